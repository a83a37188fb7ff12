// Package reads inspects messages in every way that the analysis must find. It is the input for a
// test, and is not part of the product.
package reads

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var number = regexp.MustCompile("[0-9]+")

func direct(c metav1.Condition) bool { return strings.HasPrefix(c.Message, "member ") }

func byVariable(c metav1.Condition) bool {
	said := "it says: " + c.Message
	lower := strings.ToLower(said)
	return strings.Contains(lower, "no room")
}

func byParameter(c metav1.Condition) bool { return searched(c.Message) }

func searched(text string) bool { return number.MatchString(text) }

func byResult(c metav1.Condition) bool { return worded(c) == "no room" }

func worded(c metav1.Condition) string { return fmt.Sprintf("%s: %s", c.Reason, c.Message) }

func ofError(err error) bool { return err.Error() == "no room" }

func bySwitch(c metav1.Condition) int {
	switch c.Message {
	case "no room":
		return 1
	}
	return 0
}

// none does not inspect a message.
func none(c, d metav1.Condition) (string, bool) {
	return c.Message + d.Message, c.Message == d.Message || c.Message != "" || c.Reason == "NoRoom"
}
