package mirrortest

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// Filler fills values of API types. Its bytes determine each choice, so that a fuzzer controls the
// result. Without bytes, it sets every field.
type Filler struct {
	data   []byte
	steers bool
}

// words contains strings that translation treats specially, and some others.
var words = []string{
	"x", "y", "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/metadata.name",
	"topology.kubernetes.io/zone", "xylem.io/cluster", "xylem.io/cluster-id", "xylem.io/host", "xylem.io/root",
	"xylem.io/root-uid", "xylem.io/pushed", "kosmos.io/node", "node.kubernetes.io/not-ready", "NoExecute", "Exists", "In",
	"NotIn", "DoNotSchedule", "kube-api-access-x", "kube-root-ca.crt", "token", "namespace", "kosmos-cluster38",
	"cluster38", "member-id", "linux", "app.kubernetes.io/managed-by", "pv.kubernetes.io/bind-completed",
	"kubectl.kubernetes.io/last-applied-configuration", "kubernetes.io/config.mirror", "Ready", "True",
}

// next returns the next byte. It returns 0 after the last one, which leaves everything unset.
func (f *Filler) next() int {
	if len(f.data) == 0 {
		return 0
	}
	b := f.data[0]
	f.data = f.data[1:]
	return int(b)
}

func (f *Filler) word() string {
	if !f.steers {
		return words[0]
	}
	return words[f.next()%len(words)]
}

// some returns how many elements to create for a list, map or pointer.
func (f *Filler) some(limit int) int {
	if !f.steers {
		return 1
	}
	return f.next() % (limit + 1)
}

// Fill fills a value of an API type.
func (f *Filler) Fill(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*p = *resource.NewQuantity(int64(1+f.some(8)), resource.BinarySI)
		return
	case *metav1.Time:
		*p = metav1.NewTime(time.Unix(int64(1+f.some(8)), 0))
		return
	case *intstr.IntOrString:
		*p = intstr.FromInt32(int32(1 + f.some(8))) //nolint:gosec // at most 9
		return
	case *metav1.FieldsV1:
		p.SetRawBytes([]byte("{}"))
		return
	}
	f.fillKind(v)
}

func (f *Filler) fillKind(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.some(1) == 1)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.some(300)))
	case reflect.Uint8:
		v.SetUint(uint64(f.some(9))) //nolint:gosec // at most 9
	case reflect.String:
		v.SetString(f.word())
	case reflect.Pointer:
		if f.some(1) == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			f.Fill(v.Elem())
		}
	case reflect.Slice:
		for range f.some(2) {
			elem := reflect.New(v.Type().Elem()).Elem()
			f.Fill(elem)
			v.Set(reflect.Append(v, elem))
		}
	case reflect.Map:
		for range f.some(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.Fill(key)
			f.Fill(value)
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.Fill(v.Field(i))
			}
		}
	default:
		panic("cannot fill " + v.Type().String())
	}
}

// Fuzzed returns a T filled from the fuzzer's bytes.
func Fuzzed[T any](data []byte) *T {
	v := new(T)
	(&Filler{data: data, steers: true}).Fill(reflect.ValueOf(v).Elem())
	return v
}

// At returns the field of holder at a path of a table. It creates everything along the path: one
// element in each list, with the name x if elements have names.
func At(t *testing.T, holder reflect.Value, path string) reflect.Value {
	t.Helper()
	v := holder
	for part := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(part, "[]")
		v = fieldNamed(t, v, name)
		if list {
			if v.Len() == 0 {
				elem := reflect.New(v.Type().Elem()).Elem()
				if n := elem.FieldByName("Name"); n.IsValid() && n.Kind() == reflect.String {
					n.SetString("x")
				}
				v.Set(reflect.Append(v, elem))
			}
			v = v.Index(0)
		}
	}
	return v
}

// fieldNamed returns the field of a struct, or of the struct that a pointer points to.
func fieldNamed(t *testing.T, v reflect.Value, name string) reflect.Value {
	t.Helper()
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	for _, f := range fields.JSONFields(v.Type()) {
		if f.Name == name {
			return v.FieldByIndex(f.Index)
		}
	}
	t.Fatalf("%v has no field %q", v.Type(), name)
	return reflect.Value{}
}
