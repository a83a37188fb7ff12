package mirror

import "time"

// Skew is how much the clocks of the host and of a member may differ.
const Skew = time.Minute
