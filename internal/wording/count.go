package wording

import (
	"strconv"
	"strings"
)

// CountNoun returns a number with a noun in the singular or plural: "1 Pod", "3 classes".
func CountNoun(n int, name string) string {
	if n != 1 {
		name = PluralNoun(name)
	}
	return strconv.Itoa(n) + " " + name
}

// PluralNoun returns the plural of a noun.
func PluralNoun(name string) string {
	switch {
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"):
		return name + "es"
	case strings.HasSuffix(name, "y") && !strings.HasSuffix(name, "ay") && !strings.HasSuffix(name, "ey"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}
