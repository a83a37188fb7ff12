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

// auditPolicy has everything that is asked of the API, without bodies. Watches
// count when they begin; everything else when it is answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
`

// barrierUser makes the requests that mark a place in the log. They do not count.
const barrierUser = "controlplane-audit"

// barrierTimeout bounds waiting for such a request to show in the log.
const barrierTimeout = 10 * time.Second

// Request is one request that an apiserver answered.
type Request struct {
	Time time.Time
	// User made it, with the UserAgent it said.
	User, UserAgent string
	// Verb is Kubernetes' (get, list, watch, create, update, patch, delete,
	// deletecollection). Resource is plural, with the subresource ("pods/status").
	Verb, Group, Resource string
	// DryRun: the request was only to be checked.
	DryRun          bool
	Namespace, Name string
	// Code is the HTTP status, Message what an error says.
	Code    int
	Message string
	// Unauthorized: the authorizer (RBAC) refused it; admission never saw it.
	Unauthorized bool
}

// Write reports whether the request was to change something, whether it did or not. A review,
// which is created, only asks, as does a dry run.
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

// Key is what requests are counted by.
type Key struct{ User, Verb, Resource string }

// Requests are what was read from an audit log, in its order.
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

// Writes returns the requests that were to change something.
func (rs Requests) Writes() Requests { return rs.Where(Request.Write) }

// Count returns how many there are of each key.
func (rs Requests) Count() map[Key]int {
	counts := map[Key]int{}
	for _, r := range rs {
		counts[Key{r.User, r.Verb, r.Resource}]++
	}
	return counts
}

// String is a table of Count, the most frequent first: for messages of tests.
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
	client kubernetes.Interface // as barrierUser
}

// Mark is a place in an audit log.
type Mark int64

// Mark returns the present end of the log: everything that was answered before
// the call lies before it. It needs the apiserver.
func (a *Audit) Mark(ctx context.Context) (Mark, error) { return a.barrier(ctx) }

// Since returns what was answered between the mark and this call. It needs the
// apiserver.
func (a *Audit) Since(ctx context.Context, from Mark) (Requests, error) {
	to, err := a.barrier(ctx)
	if err != nil {
		return nil, err
	}
	return a.read(from, to)
}

// barrier makes a request that can be told from all others and returns where
// it ends in the log. The apiserver writes the log as it answers, but a moment
// after the answer was sent: what follows the barrier in time follows it in the
// log, and what came before has been written.
func (a *Audit) barrier(ctx context.Context) (Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	info, err := os.Stat(a.path)
	if err != nil {
		return 0, fmt.Errorf("reading the audit log: %w", err)
	}
	from := info.Size()
	name := "barrier-" + strings.ToLower(rand.Text())
	// The user may do nothing: being refused is enough to be in the log.
	_, err = a.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		return 0, fmt.Errorf("marking a place in the audit log: want a refusal, got %w", err)
	}
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		end, found, err := find(a.path, from, []byte(name))
		if err != nil {
			return 0, fmt.Errorf("reading the audit log: %w", err)
		}
		if found {
			return Mark(end), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("reading the audit log: the request that marks its end did not appear: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// find returns the end of the first whole line from an offset on that has text.
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

// lines calls f with each whole line that begins between two offsets (to < 0:
// the end of the file), and the offset of its end.
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
			return nil // What is left is still being written.
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

// auditEvent is what is read of an event of audit.k8s.io/v1.
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

// decisionAnnotation reports what the authorizer decided.
const decisionAnnotation = "authorization.k8s.io/decision"

// counts reports whether an event represents its request: of a watch the one of
// its beginning, or, for one that was refused and never began, that of its end.
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
	begun := map[string]bool{} // watches, by audit ID
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
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return out, nil
}
