package text

import (
	"strconv"
	"strings"
)

// Count returns a number with a noun in its correct plural: "1 Pod", "3 classes".
func Count(n int, name string) string {
	if n != 1 {
		switch {
		case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"):
			name += "es"
		case strings.HasSuffix(name, "y") && !strings.HasSuffix(name, "ay") && !strings.HasSuffix(name, "ey"):
			name = strings.TrimSuffix(name, "y") + "ies"
		default:
			name += "s"
		}
	}
	return strconv.Itoa(n) + " " + name
}
