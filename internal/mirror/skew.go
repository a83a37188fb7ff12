package mirror

import "time"

// MaxClockSkew is how much the clocks of the host and of a member may differ.
const MaxClockSkew = time.Minute
