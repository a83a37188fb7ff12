package weigh

import "fmt"

const (
	// jsonObject in bytes of memory for each object and null of a JSON document,
	// which may be one of a list of the largest type of Kubernetes' APIs.
	jsonObject = 4 << 10
	// jsonValue for each list, text and number: a header, and what a map or list
	// takes for it.
	jsonValue = 128
	// jsonDepth of objects and lists in each other: Kubernetes' own go no deeper
	// than twenty or so.
	jsonDepth = 100
)

// JSON weighs documents as they are read. The zero value is ready for use.
type JSON struct {
	weight        int64
	depth         int
	text, escaped bool
	begun         bool
	length        int64
}

// Weigh takes the next bytes of a document and returns what the document weighs
// so far, and how long it is. Bytes after its end begin the next document, so it
// stops there: taken is how many of the bytes belong to this one.
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
		if j.begun && j.depth == 0 {
			return i + 1, true, nil
		}
	}
	return len(data), false, nil
}

// Weight of the document so far, and its length, both in bytes.
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
	case '{', 'n': // an object, or null
		j.weight += jsonObject
	case ',', '[':
		j.weight += jsonValue
	}
	switch c {
	case '{', '[':
		j.begun = true
		if j.depth++; j.depth > jsonDepth {
			return fmt.Errorf("%w: it is nested more than %d deep", ErrMalformed, jsonDepth)
		}
	case '}', ']':
		if j.depth--; j.depth < 0 {
			return fmt.Errorf("%w: no JSON", ErrMalformed)
		}
	}
	return nil
}
