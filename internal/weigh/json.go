package weigh

import "fmt"

const (
	// jsonObject is the memory in bytes for each object or null in a JSON document. The object may
	// be an element in a list of the largest type in Kubernetes' APIs.
	jsonObject = 4 << 10
	// jsonValue is the memory in bytes for each list, string and number: a header, and its entry in
	// a map or list.
	jsonValue = 128
	// jsonDepth is the maximum nesting of objects and lists. Kubernetes' own objects nest about
	// twenty deep.
	jsonDepth = 100
)

// JSON weighs documents while they are read. The zero value is ready for use.
type JSON struct {
	weight        int64
	depth         int
	text, escaped bool
	started       bool
	length        int64
}

// Weigh consumes the next bytes of a document, and reports whether the document ended. It stops
// at the end, because further bytes belong to the next document: taken is the number of bytes
// consumed.
func (j *JSON) Weigh(data []byte) (taken int, ended bool, err error) {
	for i, c := range data {
		j.length++
		if j.text {
			j.weight++
			j.character(c)
			continue
		}
		if err := j.structure(c); err != nil {
			return i + 1, false, err
		}
		if j.started && j.depth == 0 {
			return i + 1, true, nil
		}
	}
	return len(data), false, nil
}

// Weight returns the weight and the length of the document so far, both in bytes.
func (j *JSON) Weight() (weight, length int64) { return j.weight, j.length }

func (j *JSON) character(c byte) {
	switch {
	case j.escaped:
		j.escaped = false
	case c == '\\':
		j.escaped = true
	case c == '"':
		j.text = false
	}
}

func (j *JSON) structure(c byte) error {
	switch c {
	case '"':
		j.text = true
		j.weight += jsonValue
	case '{', 'n': // the value is an object or null
		j.weight += jsonObject
	case ',', '[':
		j.weight += jsonValue
	}
	switch c {
	case '{', '[':
		j.started = true
		if j.depth++; j.depth > jsonDepth {
			return fmt.Errorf("%w: it is nested more than %d deep", ErrMalformed, jsonDepth)
		}
	case '}', ']':
		if j.depth--; j.depth < 0 {
			return fmt.Errorf("%w: not JSON", ErrMalformed)
		}
	}
	return nil
}
