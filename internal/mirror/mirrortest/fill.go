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
	data           []byte
	choosesByBytes bool
}

// fillWords contains strings that translation treats specially, and some others.
var fillWords = []string{
	"x", "y", "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/metadata.name",
	"topology.kubernetes.io/zone", "xylem.io/cluster", "xylem.io/cluster-id", "xylem.io/host", "xylem.io/root",
	"xylem.io/root-uid", "xylem.io/pushed", "kosmos.io/node", "node.kubernetes.io/not-ready", "NoExecute", "Exists", "In",
	"NotIn", "DoNotSchedule", "kube-api-access-x", "kube-root-ca.crt", "token", "namespace", "kosmos-cluster38",
	"cluster38", "member-id", "linux", "app.kubernetes.io/managed-by", "pv.kubernetes.io/bind-completed",
	"kubectl.kubernetes.io/last-applied-configuration", "kubernetes.io/config.mirror", "Ready", "True",
}

// nextByte returns the next byte. It returns 0 after the last one, which leaves everything unset.
func (f *Filler) nextByte() int {
	if len(f.data) == 0 {
		return 0
	}
	b := f.data[0]
	f.data = f.data[1:]
	return int(b)
}

func (f *Filler) nextWord() string {
	if !f.choosesByBytes {
		return fillWords[0]
	}
	return fillWords[f.nextByte()%len(fillWords)]
}

// elementCount returns how many elements to create for a list, map or pointer.
func (f *Filler) elementCount(limit int) int {
	if !f.choosesByBytes {
		return 1
	}
	return f.nextByte() % (limit + 1)
}

// FillValue fills a value of an API type.
func (f *Filler) FillValue(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*p = *resource.NewQuantity(int64(1+f.elementCount(8)), resource.BinarySI)
		return
	case *metav1.Time:
		*p = metav1.NewTime(time.Unix(int64(1+f.elementCount(8)), 0))
		return
	case *intstr.IntOrString:
		*p = intstr.FromInt32(int32(1 + f.elementCount(8))) //nolint:gosec // at most 9
		return
	case *metav1.FieldsV1:
		p.SetRawBytes([]byte("{}"))
		return
	}
	f.fillByKind(v)
}

func (f *Filler) fillByKind(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.elementCount(1) == 1)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.elementCount(300)))
	case reflect.Uint8:
		v.SetUint(uint64(f.elementCount(9))) //nolint:gosec // at most 9
	case reflect.String:
		v.SetString(f.nextWord())
	case reflect.Pointer:
		if f.elementCount(1) == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			f.FillValue(v.Elem())
		}
	case reflect.Slice:
		for range f.elementCount(2) {
			elem := reflect.New(v.Type().Elem()).Elem()
			f.FillValue(elem)
			v.Set(reflect.Append(v, elem))
		}
	case reflect.Map:
		for range f.elementCount(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.FillValue(key)
			f.FillValue(value)
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.FillValue(v.Field(i))
			}
		}
	default:
		panic("cannot fill " + v.Type().String())
	}
}

// FuzzedObject returns a T filled from the fuzzer's bytes.
func FuzzedObject[T any](data []byte) *T {
	v := new(T)
	(&Filler{data: data, choosesByBytes: true}).FillValue(reflect.ValueOf(v).Elem())
	return v
}

// FieldAtPath returns the field of holder at a path of a table. It creates everything along the path: one
// element in each list, with the name x if elements have names.
func FieldAtPath(t *testing.T, holder reflect.Value, path string) reflect.Value {
	t.Helper()
	v := holder
	for part := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(part, "[]")
		v = structFieldNamed(t, v, name)
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

// structFieldNamed returns the field of a struct, or of the struct that a pointer points to.
func structFieldNamed(t *testing.T, v reflect.Value, name string) reflect.Value {
	t.Helper()
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	for _, f := range fields.JSONFieldsOf(v.Type()) {
		if f.Name == name {
			return v.FieldByIndex(f.Index)
		}
	}
	t.Fatalf("%v has no field %q", v.Type(), name)
	return reflect.Value{}
}
