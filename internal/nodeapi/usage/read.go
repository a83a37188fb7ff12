package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
	"github.com/xylem-io/xylem/internal/nodeapi/failure"
	"github.com/xylem-io/xylem/internal/quantity"
)

const (
	// answerLimit is the maximum size of the metrics API's response in bytes. 50,000 Pods
	// take about 25 MiB.
	answerLimit = 32 << 20
	// containersLimit is the maximum number of containers per Pod in the response.
	containersLimit = 1024
	// complaintLimit is the maximum size of an error response in bytes.
	complaintLimit = 64 << 10
	causeLimit     = 512
	// depthLimit is the maximum nesting of an unknown field. Kubernetes' own objects nest about twenty
	// levels deep.
	depthLimit = 100
)

// API is a member's API server.
type API interface {
	Location(path ...string) *url.URL
	Transport() http.RoundTripper
	Token() string
}

// Sample is one Pod in the response of the metrics API. Do not trust its strings, because the
// member controls them.
type Sample struct {
	Pod        types.NamespacedName
	Taken      time.Time
	Containers []Container
}

// Container is the usage of a container: CPU in cores, memory in bytes.
type Container struct {
	Name        string
	CPU, Memory float64
}

// Read reads the samples of the host's Pods from a member's metrics API, and calls visit for each
// sample.
func Read(ctx context.Context, api API, hostID, registration string, visit func(Sample)) *failure.Failure {
	location := api.Location("apis", "metrics.k8s.io", "v1beta1", "pods")
	location.RawQuery = url.Values{"labelSelector": {v1alpha1.LabelHost + "=" + hostID}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return failure.Unavailable("Xylem cannot build the request to member %q: %v. Check the server in the member's kubeconfig", registration, err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := api.Transport().RoundTrip(request)
	if err != nil {
		return failure.Slow(ctx, failure.Unavailable("member %q cannot be reached: %s. Run kubectl describe clusterregistration %[1]s", registration, sanitize.Plain(err.Error(), causeLimit)))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		content, _ := io.ReadAll(io.LimitReader(response.Body, complaintLimit))
		return refused(api, registration, response.StatusCode, content)
	}
	if err := decode(io.LimitReader(response.Body, answerLimit), visit); err != nil {
		return failure.Slow(ctx, &failure.Failure{Code: http.StatusBadGateway, Exact: true, Message: fmt.Sprintf(
			"the response of the metrics API in member %q cannot be read: %s. Ask the member's admin to check the metrics API", registration, sanitize.Plain(err.Error(), causeLimit))})
	}
	return nil
}

// refused converts an error response of the member to a failure.
func refused(api API, registration string, code int, content []byte) *failure.Failure {
	failed := failure.Answered(registration, api.Token(), code, content)
	switch code {
	case http.StatusNotFound:
		failed = failure.NotFound("member %q has no metrics API (metrics.k8s.io/v1beta1), so Xylem cannot report the resource usage of Pods in the member. Ask the member's admin to install metrics-server", registration)
	case http.StatusForbidden:
		failed = failure.Forbidden(`member %q does not let Xylem read the resource usage of Pods: Xylem's account in the member lacks the verb "list" on pods.metrics.k8s.io. An admin of the member can grant the verb with kubectl xylem register %s --member-kubeconfig FILE --with-metrics, or with the value metrics.enabled=true of the chart xylem-member`, registration, registration)
	}
	failed.Exact = true
	return failed
}

// decode decodes a PodMetricsList as a stream. It keeps only one Pod's samples in memory.
func decode(from io.Reader, visit func(Sample)) error {
	d := json.NewDecoder(from)
	return object(d, func(key string) error {
		if key != "items" {
			return skip(d)
		}
		return list(d, func() error {
			sample, err := one(d)
			if err == nil {
				visit(sample)
			}
			return err
		})
	})
}

// one decodes one Pod's sample.
func one(d *json.Decoder) (s Sample, err error) {
	return s, object(d, func(key string) error {
		switch key {
		case "metadata":
			var meta struct{ Namespace, Name string }
			if err := d.Decode(&meta); err != nil {
				return fmt.Errorf("read the metadata of a Pod's metrics: %w", err)
			}
			s.Pod = types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}
			return nil
		case "timestamp":
			return d.Decode(&s.Taken)
		case "containers":
			return list(d, func() error {
				var c struct {
					Name  string
					Usage struct{ CPU, Memory amount }
				}
				if err := d.Decode(&c); err != nil {
					return fmt.Errorf("read the metrics of a container: %w", err)
				}
				if s.Containers = append(s.Containers, Container{c.Name, float64(c.Usage.CPU), float64(c.Usage.Memory)}); len(s.Containers) > containersLimit {
					return errors.New("a Pod has too many containers")
				}
				return nil
			})
		}
		return skip(d)
	})
}

// amount is a quantity that is checked before it is decoded.
type amount float64

// UnmarshalJSON implements json.Unmarshaler.
func (a *amount) UnmarshalJSON(value []byte) error {
	if string(value) == "null" {
		return nil
	}
	q, err := quantity.Parse(strings.Trim(string(value), `"`))
	*a = amount(q.AsApproximateFloat64())
	return err
}

// object reads a JSON object. It calls field to read each key's value.
func object(d *json.Decoder, field func(key string) error) error {
	return within(d, '{', func() error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // the decoder accepts only strings as keys
		return field(name)
	})
}

// list reads a JSON array or null. It calls element to read each element.
func list(d *json.Decoder, element func() error) error { return within(d, '[', element) }

func within(d *json.Decoder, begin json.Delim, each func() error) error {
	first, err := d.Token()
	if err != nil || first == nil {
		return err
	}
	if first != begin {
		return fmt.Errorf("found %q instead of %q", fmt.Sprint(first), begin)
	}
	for d.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// skip reads a value and discards it. The decoder allocates memory for each level of nesting, so skip
// limits the depth.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > depthLimit {
				return fmt.Errorf("a value is nested more than %d levels deep", depthLimit)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
