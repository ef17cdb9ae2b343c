# Reference values of survey designs and estimators, from R's survey and sampling packages.
#
#     Rscript survey.R     (in this directory; writes survey.json)
#
# Made with R 4.2.2, survey 4.1.1, sampling 2.9, jsonlite. Debian: r-cran-survey r-cran-sampling r-cran-jsonlite.
suppressMessages({library(survey); library(sampling); library(jsonlite)})

quietly <- function(expression) suppressWarnings(expression)
figures <- function(statistic, design) {
  list(estimate = unname(coef(statistic)[1]), variance = as.numeric(vcov(statistic))[1],
       se = as.numeric(quietly(SE(statistic)))[1], df = degf(design))
}
columns <- list(y = c(2, 5, 4, 9, 7, 11, 10, 15), x = c(1, 2, 3, 3, 4, 6, 5, 8),
                event = c(1, 0, 1, 1, 0, 1, 0, 1), domain = c(1, 1, 0, 1, 0, 1, 1, 0))

# All estimators on one design. Domain estimates are those of the subset design.
estimates <- function(design) {
  inside <- subset(design, domain == 1)
  result <- list(
    total = figures(quietly(svytotal(~y, design)), design),
    mean = figures(quietly(svymean(~y, design)), design),
    rate = figures(quietly(svymean(~event, design)), design),
    domain_total = figures(quietly(svytotal(~y, inside)), inside),
    domain_mean = figures(quietly(svymean(~y, inside)), inside)
  )
  ratio <- quietly(svyratio(~y, ~x, design))
  result$ratio <- list(estimate = as.numeric(coef(ratio)), variance = as.numeric(vcov(ratio)),
                       se = as.numeric(quietly(SE(ratio))), df = degf(design))
  ratio <- quietly(svyratio(~y, ~x, inside))
  result$domain_ratio <- list(estimate = as.numeric(coef(ratio)), variance = as.numeric(vcov(ratio)),
                              se = as.numeric(quietly(SE(ratio))), df = degf(inside))
  both <- quietly(svymean(~y + x, design))
  result$difference <- list(estimate = unname(coef(both)[1] - coef(both)[2]),
                            variance = as.numeric(t(c(1, -1)) %*% vcov(both) %*% c(1, -1)), df = degf(design))
  result$difference$se <- sqrt(result$difference$variance)
  result
}
deffs <- function(design) {
  list(with = unname(as.numeric(deff(svymean(~y, design, deff = "replace")))),
       without = unname(as.numeric(deff(svymean(~y, design, deff = TRUE)))))
}

units <- as.data.frame(columns)
res <- list(versions = list(R = as.character(getRversion()), survey = as.character(packageVersion("survey")),
                            sampling = as.character(packageVersion("sampling"))),
            columns = columns)

# Poisson sampling.
units$p <- c(.9, .5, .3, .8, .2, .6, .4, .7)
poisson <- svydesign(ids = ~1, probs = ~p, data = units, pps = poisson_sampling(units$p))
res$poisson <- c(list(pi = units$p), estimates(poisson), list(deff = deffs(poisson)))

# Fixed size, 8 of 20 with probabilities proportional to 1..20, in two designs and two variance forms.
pik <- inclusionprobabilities(1:20, 8)
drawn <- c(3, 7, 9, 12, 14, 16, 18, 20)
loose <- UPmaxentropypi2(pik)   # the package's own stops iterating at 1e-6
working <- UPMEpiktildefrompik(pik, eps = 1e-15)
tight <- UPMEpik2frompikw(pik, working / (1 - working))
joints <- list(maximum_entropy = loose, maximum_entropy_tight = tight, sampford = UPsampfordpi2(pik))
res$population <- list(pi = pik, drawn = drawn)
for (name in names(joints)) {
  joint <- joints[[name]]
  units$p <- pik[drawn]
  case <- list(pi = pik[drawn], joint = joint[drawn, drawn], population_joint = joint)
  for (form in c("YG", "HT")) {
    design <- svydesign(ids = ~1, fpc = ~p, data = units, pps = ppsmat(joint[drawn, drawn]), variance = form)
    case[[form]] <- estimates(design)
    if (form == "YG") case$deff <- deffs(design)
  }
  case$varHT <- c(varHT(columns$y, joint[drawn, drawn], 1), varHT(columns$y, joint[drawn, drawn], 2))
  res[[name]] <- case
}

# Simple random sampling, 8 of 30, with finite population correction.
units$N <- 30
srs <- svydesign(ids = ~1, fpc = ~N, data = units)
res$simple_random <- c(list(population_size = 30), estimates(srs), list(deff = deffs(srs)))

# Stratified: 3 of 10, 3 of 6, 2 of 5.
units$h <- c("a", "a", "a", "b", "b", "b", "c", "c")
units$N <- c(10, 10, 10, 6, 6, 6, 5, 5)
stratified <- svydesign(ids = ~1, strata = ~h, fpc = ~N, data = units)
res$stratified <- c(list(strata = units$h, sizes = list(a = 10, b = 6, c = 5)), estimates(stratified),
                    list(deff = deffs(stratified)))

write_json(res, "survey.json", digits = NA, auto_unbox = TRUE, pretty = FALSE, na = "null")
