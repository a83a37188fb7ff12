package weigh

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// LengthLimit is the maximum length, in bytes, of a quantity's text. Kubernetes formats an int64 with
	// a suffix in about 20 bytes.
	LengthLimit = 128
	// exponentLimit is the maximum absolute value of a decimal exponent. The largest suffix, E, is 10^18.
	exponentLimit = 100
	// scaleLimit and bitsLimit are the limits for decoded quantities. They allow every quantity that CheckText
	// allows.
	scaleLimit = exponentLimit + LengthLimit
	bitsLimit  = 4 * scaleLimit
)

// ErrOutOfRange is returned for a quantity that would take too long to decode or compare.
var ErrOutOfRange = errors.New("the quantity is out of range")

// CheckText returns ErrOutOfRange if text would take too long to decode or compare. It accepts text that
// is not a quantity, because the decoder rejects such text quickly.
func CheckText(text string) error {
	if len(text) > LengthLimit {
		return fmt.Errorf("%w: it is longer than %d bytes", ErrOutOfRange, LengthLimit)
	}
	text = strings.TrimSpace(text)
	begin := strings.IndexAny(text, "eE")
	if begin < 0 {
		return nil
	}
	digits := strings.TrimLeft(text[begin+1:], "+-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return nil // a suffix such as E or Ei, or not a quantity
	}
	if exponent, err := strconv.Atoi(digits); err != nil || exponent > exponentLimit {
		return fmt.Errorf("%w: the exponent of %q is not between -%d and %[3]d", ErrOutOfRange, text, exponentLimit)
	}
	return nil
}

// ParseChecked parses text like resource.ParseQuantity, after it checks the text.
func ParseChecked(text string) (resource.Quantity, error) {
	if err := CheckText(text); err != nil {
		return resource.Quantity{}, err
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("parse %q: %w", text, err)
	}
	return q, nil
}

// IsInRange reports whether a decoded quantity can be compared and added quickly. It does neither
// itself.
func IsInRange(q resource.Quantity) bool {
	d := q.AsDec() // of the copy: it only moves the number and its scale
	scale := int64(d.Scale())
	return -scaleLimit <= scale && scale <= scaleLimit && d.UnscaledBig().BitLen() <= bitsLimit
}
