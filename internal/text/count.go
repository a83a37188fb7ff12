package text

import (
	"strconv"
	"strings"
)

// Count returns a number with a noun in the singular or plural: "1 Pod", "3 classes".
func Count(n int, name string) string {
	if n != 1 {
		name = Plural(name)
	}
	return strconv.Itoa(n) + " " + name
}

// Plural returns the plural of a noun.
func Plural(name string) string {
	switch {
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"):
		return name + "es"
	case strings.HasSuffix(name, "y") && !strings.HasSuffix(name, "ay") && !strings.HasSuffix(name, "ey"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}
