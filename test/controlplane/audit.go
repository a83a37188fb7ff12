package controlplane

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// auditPolicy logs every API request without its body. Watches are logged when they begin, and
// other requests when they end.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
`

// barrierUser makes the requests that mark a position in the log. Audit.Since omits them.
const barrierUser = "controlplane-audit"

// barrierTimeout is the maximum time until a barrier request appears in the log.
const barrierTimeout = 10 * time.Second

// Request is one request to which an apiserver responded.
type Request struct {
	Time time.Time
	// User and UserAgent identify the client.
	User, UserAgent string
	// Verb is the Kubernetes verb (get, list, watch, create, update, patch, delete,
	// deletecollection). Resource is the plural, with the subresource ("pods/status").
	Verb, Group, Resource string
	// DryRun reports whether the request was a dry run.
	DryRun          bool
	Namespace, Name string
	// Code is the HTTP status, and Message the error message, if any.
	Code    int
	Message string
	// Unauthorized reports whether the authorizer (RBAC) denied it, before admission.
	Unauthorized bool
}

// Write reports whether the request was meant to change an object, even if it failed. Dry runs and
// reviews are not writes.
func (r Request) Write() bool {
	if r.DryRun || r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io" {
		return false
	}
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	default:
		return false
	}
}

// Key is the key by which requests are counted.
type Key struct{ User, Verb, Resource string }

// Requests are requests from an audit log, in order.
type Requests []Request

// Where returns the requests for which keep is true.
func (rs Requests) Where(keep func(Request) bool) Requests {
	var out Requests
	for _, r := range rs {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out
}

// By returns the requests of a user.
func (rs Requests) By(user string) Requests {
	return rs.Where(func(r Request) bool { return r.User == user })
}

// Writes returns the write requests.
func (rs Requests) Writes() Requests { return rs.Where(Request.Write) }

// Count returns the number of requests of each key.
func (rs Requests) Count() map[Key]int {
	counts := map[Key]int{}
	for _, r := range rs {
		counts[Key{r.User, r.Verb, r.Resource}]++
	}
	return counts
}

// String returns the counts as a table for test messages, largest first.
func (rs Requests) String() string {
	counts := rs.Count()
	keys := make([]Key, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(
			cmp.Compare(counts[b], counts[a]),
			cmp.Compare(a.User, b.User), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource),
		)
	})
	var out strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&out, "%6d  %-12s %-40s %s\n", counts[k], k.Verb, k.Resource, k.User)
	}
	return out.String()
}

// Audit reads an apiserver's audit log.
type Audit struct {
	path   string
	client kubernetes.Interface // authenticates as barrierUser
}

// Mark is a position in an audit log.
type Mark int64

// Mark returns the current end of the log, after all requests that ended before the call. The
// apiserver must be running.
func (a *Audit) Mark(ctx context.Context) (Mark, error) { return a.barrier(ctx) }

// Since returns the requests that ended between the mark and this call. The apiserver must be
// running.
func (a *Audit) Since(ctx context.Context, from Mark) (Requests, error) {
	to, err := a.barrier(ctx)
	if err != nil {
		return nil, err
	}
	return a.read(from, to)
}

// barrier makes a unique request, and returns the offset in the log at which its entry ends. The
// apiserver logs requests with a short delay, but in the order in which it responds. So all earlier
// requests precede the barrier in the log, and all later ones follow it.
func (a *Audit) barrier(ctx context.Context) (Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	info, err := os.Stat(a.path)
	if err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	from := info.Size()
	name := "barrier-" + strings.ToLower(rand.Text())
	// The user has no permissions, but denied requests are also logged.
	_, err = a.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		return 0, fmt.Errorf("mark a position in the audit log: want a rejection, got %w", err)
	}
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		end, found, err := find(a.path, from, []byte(name))
		if err != nil {
			return 0, fmt.Errorf("read the audit log: %w", err)
		}
		if found {
			return Mark(end), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("read the audit log: the request that marks the end is missing: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// find returns the end of the first complete line that contains text, after the given offset.
func find(path string, from int64, text []byte) (end int64, found bool, err error) {
	err = lines(path, from, -1, func(line []byte, at int64) error {
		if bytes.Contains(line, text) {
			end, found = at, true
			return errStop
		}
		return nil
	})
	return end, found, err
}

var errStop = errors.New("stop")

// lines calls f with each complete line that begins between two offsets (to < 0: the end of the
// file), and the offset of its end.
func lines(path string, from, to int64, f func(line []byte, end int64) error) error {
	file, err := os.Open(path) //nolint:gosec // A log of ours.
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(file, 1<<16)
	for at := from; to < 0 || at < to; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // The apiserver is still writing the rest.
		}
		if err != nil {
			return err
		}
		at += int64(len(line))
		if err := f(line, at); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
	}
	return nil
}

// auditEvent has the fields of an audit.k8s.io/v1 Event that this package reads.
type auditEvent struct {
	AuditID        string           `json:"auditID"`
	Stage          string           `json:"stage"`
	Verb           string           `json:"verb"`
	RequestURI     string           `json:"requestURI"`
	UserAgent      string           `json:"userAgent"`
	StageTimestamp metav1.MicroTime `json:"stageTimestamp"`
	User           struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

// decisionAnnotation is the audit annotation with the authorizer's decision.
const decisionAnnotation = "authorization.k8s.io/decision"

// counts reports whether an event represents its request, so that each request is counted only
// once. A watch is represented by the event at its beginning or, if it was denied, by the one at
// its end.
func counts(e *auditEvent, begun map[string]bool) bool {
	started := e.Stage == "ResponseStarted"
	if e.Verb != "watch" {
		return !started
	}
	if started {
		begun[e.AuditID] = true
		return true
	}
	return !begun[e.AuditID] && e.ResponseStatus.Code >= http.StatusBadRequest
}

func (a *Audit) read(from, to Mark) (Requests, error) {
	var out Requests
	begun := map[string]bool{} // watches that have begun, by audit ID
	err := lines(a.path, int64(from), int64(to), func(line []byte, _ int64) error {
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.User.Username == barrierUser || !counts(&e, begun) {
			return nil
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		out = append(out, Request{
			Time: e.StageTimestamp.Time, User: e.User.Username, UserAgent: e.UserAgent,
			Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: resource, DryRun: strings.Contains(e.RequestURI, "dryRun=All"),
			Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code, Message: e.ResponseStatus.Message,
			Unauthorized: e.Annotations[decisionAnnotation] == "forbid",
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return out, nil
}
