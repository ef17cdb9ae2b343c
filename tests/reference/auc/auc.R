# Reference values of areas under the receiver operating characteristic, from R's pROC package.
#
#     Rscript auc.R     (in this directory; writes auc.json)
#
# Made with R 4.2.2, pROC 1.18.0, jsonlite. Debian: r-base-core r-cran-proc r-cran-jsonlite.
# Data: outcome, s100b, wfns and ndka of pROC's aSAH (Turck et al., Intensive Care Medicine 36, 2010: 113
# patients with aneurysmal subarachnoid haemorrhage). Outcome 1 is "Poor".
suppressMessages({library(pROC); library(jsonlite)})
data(aSAH)
markers <- c("s100b", "wfns", "ndka")
columns <- list(outcome = as.integer(aSAH$outcome == "Poor"), s100b = aSAH$s100b,
                wfns = as.integer(aSAH$wfns), ndka = aSAH$ndka)
curve <- function(name, rows = seq_along(columns$outcome), ...)
  roc(columns$outcome[rows], columns[[name]][rows], levels = c(0, 1), direction = "<", quiet = TRUE, ...)
curves <- sapply(markers, curve, simplify = FALSE)

covariance <- outer(markers, markers, Vectorize(function(a, b)
  if (a == b) var(curves[[a]], method = "delong") else cov(curves[[a]], curves[[b]], method = "delong")))
pairs <- list(c("s100b", "wfns"), c("s100b", "ndka"), c("wfns", "ndka"))
tests <- lapply(pairs, function(pair) {
  test <- roc.test(curves[[pair[1]]], curves[[pair[2]]], method = "delong", paired = TRUE)
  list(first = pair[1], second = pair[2], z = unname(test$statistic), p_value = unname(test$p.value))
})
# Two different groups of patients: no covariance.
halves <- list(seq_len(60), 61:113)
apart <- roc.test(curve("s100b", halves[[1]]), curve("s100b", halves[[2]]), method = "delong", paired = FALSE)
unpaired <- list(cut = 60, d = unname(apart$statistic), areas = unname(apart$estimate))

ranges <- list(c(0, 0.1), c(0, 0.25), c(0.1, 0.3), c(0.3, 1))
partial <- lapply(ranges, function(range) {
  area <- function(name, correct) as.numeric(auc(curves[[name]], partial.auc = 1 - range,
                                                 partial.auc.focus = "specificity",
                                                 partial.auc.correct = correct))
  list(low = range[1], high = range[2],
       plain = sapply(markers, area, correct = FALSE), standardised = sapply(markers, area, correct = TRUE))
})
sensitive <- sapply(markers, function(name) as.numeric(auc(curves[[name]], partial.auc = c(1, 0.8),
                    partial.auc.focus = "sensitivity", partial.auc.correct = TRUE)))

rates <- c(0.05, 0.1, 0.2, 0.5)
found <- lapply(rates, function(rate) list(rate = rate, sensitivity = sapply(markers, function(name)
  coords(curves[[name]], x = 1 - rate, input = "specificity", ret = "sensitivity", transpose = FALSE)$sensitivity)))

write_json(list(
  source = "Columns of aSAH of R's pROC 1.18.0: Turck et al., Intensive Care Medicine 36, 2010",
  versions = list(R = as.character(getRversion()), pROC = as.character(packageVersion("pROC"))),
  columns = columns,
  area = sapply(markers, function(name) as.numeric(auc(curves[[name]]))),
  covariance = covariance,
  interval = lapply(curves, function(r) as.numeric(ci.auc(r, method = "delong"))[c(1, 3)]),
  tests = tests, unpaired = unpaired, partial = partial, sensitive = as.list(sensitive), found = found
), "auc.json", digits = NA, auto_unbox = TRUE)
