package suite

import "github.com/onsi/ginkgo/v2"

// Slow labels stories that only `make test-all` runs.
var Slow = ginkgo.Label("slow")

// Core labels stories that `make test` runs although they take long.
var Core = ginkgo.Label("core")
