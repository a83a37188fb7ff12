package nodeapi

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
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/weigh"
)

const (
	// metricsResponseLimit is the maximum size of the metrics API's response in bytes. 50,000 Pods
	// take about 25 MiB.
	metricsResponseLimit = 32 << 20
	// containersLimit is the maximum number of containers per Pod in the response.
	containersLimit = 1024
	// metricsErrorLimit is the maximum size of an error response in bytes.
	metricsErrorLimit = 64 << 10
	metricsCauseLimit = 512
	// nestingLimit is the maximum nesting of an unknown field. Kubernetes' own objects nest about twenty
	// levels deep.
	nestingLimit = 100
)

// MetricsAPI is a member's API server.
type MetricsAPI interface {
	URLForPath(path ...string) *url.URL
	RequestTransport() http.RoundTripper
	CurrentToken() string
}

// UsageSample is one Pod in the response of the metrics API. Do not trust its strings, because the
// member controls them.
type UsageSample struct {
	Pod        types.NamespacedName
	Taken      time.Time
	Containers []ContainerUsage
}

// ContainerUsage is the usage of a container: CPU in cores, memory in bytes.
type ContainerUsage struct {
	Name        string
	CPU, Memory float64
}

// ReadUsage reads the samples of the host's Pods from a member's metrics API, and calls visit for each
// sample.
func ReadUsage(ctx context.Context, api MetricsAPI, hostID, registration string, visit func(UsageSample)) *Failure {
	location := api.URLForPath("apis", "metrics.k8s.io", "v1beta1", "pods")
	location.RawQuery = url.Values{"labelSelector": {v1alpha1.LabelHost + "=" + hostID}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return UnavailableFailure("Xylem cannot build the request to member %q: %v. Check the server in the member's kubeconfig", registration, err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := api.RequestTransport().RoundTrip(request)
	if err != nil {
		return TimeoutFailureOr(ctx, UnavailableFailure("member %q cannot be reached: %s. Run kubectl describe clusterregistration %[1]s", registration, mirror.PlainText(err.Error(), metricsCauseLimit)))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		content, _ := io.ReadAll(io.LimitReader(response.Body, metricsErrorLimit))
		return usageFailure(api, registration, response.StatusCode, content)
	}
	if err := decodePodMetrics(io.LimitReader(response.Body, metricsResponseLimit), visit); err != nil {
		return TimeoutFailureOr(ctx, &Failure{Code: http.StatusBadGateway, Exact: true, Message: fmt.Sprintf(
			"the response of the metrics API in member %q cannot be read: %s. Ask the member's admin to check the metrics API", registration, mirror.PlainText(err.Error(), metricsCauseLimit))})
	}
	return nil
}

// usageFailure converts an error response of the member to a failure.
func usageFailure(api MetricsAPI, registration string, code int, content []byte) *Failure {
	failed := MemberResponseFailure(registration, api.CurrentToken(), code, content)
	switch code {
	case http.StatusNotFound:
		failed = NotFoundFailure("member %q has no metrics API (metrics.k8s.io/v1beta1), so Xylem cannot report the resource usage of Pods in the member. Ask the member's admin to install metrics-server", registration)
	case http.StatusForbidden:
		failed = ForbiddenFailure(`member %q does not let Xylem read the resource usage of Pods: Xylem's account in the member lacks the verb "list" on pods.metrics.k8s.io. An admin of the member can grant the verb with kubectl xylem register %s --member-kubeconfig FILE --with-metrics, or with the value metrics.enabled=true of the chart xylem-member`, registration, registration)
	}
	failed.Exact = true
	return failed
}

// decodePodMetrics decodes a PodMetricsList as a stream. It keeps only one Pod's samples in memory.
func decodePodMetrics(from io.Reader, visit func(UsageSample)) error {
	d := json.NewDecoder(from)
	return readObject(d, func(key string) error {
		if key != "items" {
			return skipValue(d)
		}
		return readList(d, func() error {
			sample, err := decodeSample(d)
			if err == nil {
				visit(sample)
			}
			return err
		})
	})
}

// decodeSample decodes one Pod's sample.
func decodeSample(d *json.Decoder) (s UsageSample, err error) {
	return s, readObject(d, func(key string) error {
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
			return readList(d, func() error {
				var c struct {
					Name  string
					Usage struct{ CPU, Memory checkedQuantity }
				}
				if err := d.Decode(&c); err != nil {
					return fmt.Errorf("read the metrics of a container: %w", err)
				}
				if s.Containers = append(s.Containers, ContainerUsage{c.Name, float64(c.Usage.CPU), float64(c.Usage.Memory)}); len(s.Containers) > containersLimit {
					return errors.New("a Pod has too many containers")
				}
				return nil
			})
		}
		return skipValue(d)
	})
}

// checkedQuantity is a quantity that is checked before it is decoded.
type checkedQuantity float64

// UnmarshalJSON implements json.Unmarshaler.
func (a *checkedQuantity) UnmarshalJSON(value []byte) error {
	if string(value) == "null" {
		return nil
	}
	q, err := weigh.ParseChecked(strings.Trim(string(value), `"`))
	*a = checkedQuantity(q.AsApproximateFloat64())
	return err
}

// readObject reads a JSON object. It calls field to read each key's value.
func readObject(d *json.Decoder, field func(key string) error) error {
	return readDelimited(d, '{', func() error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // the decoder accepts only strings as keys
		return field(name)
	})
}

// readList reads a JSON array or null. It calls element to read each element.
func readList(d *json.Decoder, element func() error) error { return readDelimited(d, '[', element) }

func readDelimited(d *json.Decoder, begin json.Delim, each func() error) error {
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

// skipValue reads a value and discards it. The decoder allocates memory for each level of nesting, so skip
// limits the depth.
func skipValue(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > nestingLimit {
				return fmt.Errorf("a value is nested more than %d levels deep", nestingLimit)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
