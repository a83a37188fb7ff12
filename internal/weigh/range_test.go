package weigh

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestCheck(t *testing.T) {
	for text, want := range map[string]error{
		"":                                   nil,
		"0":                                  nil,
		"250m":                               nil,
		"1.5Gi":                              nil,
		"8E":                                 nil,
		"8Ei":                                nil,
		"1e3":                                nil,
		"-1E+18":                             nil,
		"1e-9":                               nil,
		"1e100":                              nil,
		"1e00000000000000000000000000000001": nil,
		"null":                               nil,
		"true":                               nil,
		"much":                               nil,
		"1e5e99999":                          nil, // not a quantity
		"1e101":                              ErrOutOfRange,
		"1e-101":                             ErrOutOfRange,
		"1e2000000001":                       ErrOutOfRange,
		"1E+2000000001":                      ErrOutOfRange,
		" 1e2000000001\t":                    ErrOutOfRange,
		"1e-2147483647":                      ErrOutOfRange,
		"1e-00000002147483647":               ErrOutOfRange,
		"1e8589934593":                       ErrOutOfRange, // 1 in 32 bits
		"1e99999999999999999999999999":       ErrOutOfRange,
		"1000000000000000000000e900000000":   ErrOutOfRange,
		strings.Repeat("1", LengthLimit):     nil,
		strings.Repeat("1", LengthLimit+1):   ErrOutOfRange,
		strings.Repeat("0", LengthLimit) + "1e2000000001": ErrOutOfRange,
	} {
		t.Run(text, func(t *testing.T) {
			if err := CheckText(text); !errors.Is(err, want) {
				t.Errorf("error is %v, want %v", err, want)
			}
		})
	}
}

// Each quantity that passes CheckText is in range once decoded.
func TestInRange(t *testing.T) {
	for _, text := range []string{
		"0", "1", "-1", "250m", "1.5Gi", "8Ei", "1e3", "1e100", "-1e100", "1e-100",
		strings.Repeat("9", LengthLimit-5) + "e100", strings.Repeat("9", LengthLimit-2) + "Ei",
		"0." + strings.Repeat("9", LengthLimit-7) + "e-100",
	} {
		q, err := ParseChecked(text)
		if err != nil || !IsInRange(q) {
			t.Errorf("%s: error is %v, in range is %v, want true", text, err, IsInRange(q))
		}
	}
	// The decoder accepts these quantities quickly.
	for _, text := range []string{"1e2000000001", "-1e2000000001", "1e101000", "12e900000000"} {
		if IsInRange(resource.MustParse(text)) {
			t.Errorf("%s is in range", text)
		}
	}
	q := resource.MustParse("250m")
	if before := q.DeepCopy(); !IsInRange(q) || q != before {
		t.Error("InRange changed the quantity")
	}
}

func TestParse(t *testing.T) {
	if q, err := ParseChecked("250m"); err != nil || q.MilliValue() != 250 {
		t.Errorf("%v, %v", q, err)
	}
	if _, err := ParseChecked("much"); err == nil {
		t.Error("accepted text that is not a quantity")
	}
	if _, err := ParseChecked("1e-2147483647"); !errors.Is(err, ErrOutOfRange) {
		t.Errorf("error is %v, want ErrOutOfRange", err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, text := range []string{"250m", "1.5Gi", "1e100", "1e-2147483647", "1000000000000000000000e900000000", "1e2000000001", "1eE5", "1e+-5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if q, err := ParseChecked(text); err == nil && !IsInRange(q) {
			t.Errorf("%q is out of range", text)
		}
	})
}
