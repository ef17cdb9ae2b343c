# Reference values of cluster-robust standard errors and intervals of rates, from R's survey package.
#
#     Rscript clusters.R     (in this directory; writes clusters.json)
#
# Made with R 4.2.2, survey 4.1.1, jsonlite. Debian: r-cran-survey r-cran-jsonlite.
suppressMessages({library(survey); library(jsonlite)})

# 24 clusters of three rows in two strata; some clusters have no row in the domain. No random numbers.
row <- 0:71
units <- data.frame(
  cluster = row %/% 3, stratum = ifelse(row %/% 3 < 10, "a", "b"),
  y = ((row * 37) %% 101) / 10 + (row %/% 36) * 4, x = 1 + ((row * 53) %% 17) / 5,
  event = as.numeric((row * 29) %% 7 < 2), rare = as.numeric(row %in% c(4, 5, 40)),
  weight = 0.5 + ((row * 11) %% 13) / 6, domain = as.numeric((row %/% 3) %% 3 != 1 & row %% 5 != 0)
)

figures <- function(statistic, design) {
  list(estimate = as.numeric(coef(statistic))[1], se = as.numeric(SE(statistic))[1], df = degf(design))
}
rate <- function(name, design, level) {
  interval <- suppressWarnings(
    svyciprop(as.formula(paste0("~", name)), design, method = "beta", level = level))
  as.numeric(attr(interval, "ci"))
}
estimates <- function(design) {
  # The degrees of freedom of a domain are those of the subset design.
  list(
    mean = figures(svymean(~y, design), design),
    ratio = figures(svyratio(~y, ~x, design), design),
    rate = figures(svymean(~event, design), design),
    beta = list(event = rate("event", design, 0.95), event_90 = rate("event", design, 0.9),
                rare = if (any(design$variables$rare == 1)) rate("rare", design, 0.95))
  )
}

designs <- list(
  clusters = svydesign(ids = ~cluster, weights = ~1, data = units),
  weights = svydesign(ids = ~cluster, weights = ~weight, data = units),
  strata = svydesign(ids = ~cluster, strata = ~stratum, weights = ~1, data = units, nest = TRUE),
  strata_weights = svydesign(ids = ~cluster, strata = ~stratum, weights = ~weight, data = units, nest = TRUE)
)
res <- list(versions = list(R = as.character(getRversion()), survey = as.character(packageVersion("survey"))),
            columns = as.list(units))
for (name in names(designs)) {
  res$designs[[name]] <- estimates(designs[[name]])
  res$domains[[name]] <- estimates(subset(designs[[name]], domain == 1))
}
write_json(res, "clusters.json", digits = NA, auto_unbox = TRUE, pretty = FALSE, na = "null")
