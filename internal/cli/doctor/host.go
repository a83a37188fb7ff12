package doctor

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/text"
)

// Doctor reports a warning or an error if the difference between two clocks exceeds these.
const (
	skewSmall = 10 * time.Second
	skewLarge = time.Minute
)

// clockHere compares the clock of this machine with the host's.
func judgeHostClock(h *Host) []Finding {
	c := h.Clock
	switch {
	case !c.Known:
		return nil
	case c.Ahead.Abs()-c.Precision > skewLarge:
		return []Finding{Problem(Warning, CheckClock, "", fmt.Sprintf("the clock of this machine is %s the host's, so kubectl prints wrong ages, and may misjudge whether tokens have expired", apart(-c.Ahead)), "Synchronize this machine's clock (NTP), or the host's if that one is wrong.")}
	}
	return []Finding{Passed(CheckClock, "", "the clocks of this machine and the host differ by less than %s", within(c.Ahead, c.Precision))}
}

func apart(ahead time.Duration) string {
	if ahead < 0 {
		return fmt.Sprintf("%s behind", (-ahead).Round(time.Second))
	}
	return fmt.Sprintf("%s ahead of", ahead.Round(time.Second))
}

func within(ahead, precision time.Duration) time.Duration {
	return (ahead.Abs() + precision).Truncate(time.Second) + time.Second
}

// registrations reports the conditions of registrations that an admin must check.
func judgeRegistrations(h *Host) []Finding {
	if !h.Registrations.Read || h.Definition.Absent() {
		return nil
	}
	var found []Finding
	for i := range h.Registrations.Items {
		r := &h.Registrations.Items[i]
		for _, c := range inspect.RegistrationProblems(r) {
			level := Warning
			switch c.Type {
			case v1alpha1.ConditionConnected, v1alpha1.ConditionNodeReady, v1alpha1.ConditionSynced:
				if c.Status != "True" {
					level = Error
				}
			}
			what, toDo := inspect.Explain(c.Reason, c.Message)
			found = append(found, Problem(level, CheckMembers, r.Name, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, what), toDo))
		}
	}
	switch n := len(h.Registrations.Items); {
	case n == 0:
		return []Finding{Passed(CheckMembers, "", "no cluster is registered yet")}
	case len(found) == 0:
		found = append(found, Passed(CheckMembers, "", "%s, and the manager reports no problems", text.Count(n, "registration")))
	}
	for i := range h.Registrations.Items {
		if lifted := placement.LiftedDenials(&h.Registrations.Items[i]); len(lifted) > 0 {
			found = append(found, Passed(CheckMembers, h.Registrations.Items[i].Name,
				"spec.namespaces.deny %s", placement.LiftedText(lifted)))
		}
	}
	return found
}

// tokenSoon is how long before a token's expiry doctor warns if the manager does not renew the
// token.
const tokenSoon = 12 * time.Hour

// tokens checks when the manager's tokens for members expire.
func judgeTokens(f *Facts) []Finding {
	h := &f.Host
	if !h.Registrations.Read || len(h.Registrations.Items) == 0 {
		return nil
	}
	issued := map[string]time.Time{}
	for i := range f.Members {
		issued[f.Members[i].Registration] = f.Members[i].Issued
	}
	now := h.At.Add(h.Clock.Ahead)
	var found []Finding
	earliest := time.Time{}
	for i := range h.Registrations.Items {
		r := &h.Registrations.Items[i]
		if r.Status.TokenExpires == nil {
			continue
		}
		ends := r.Status.TokenExpires.Time
		renewed := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionTokenFresh) != nil
		age := ""
		if at := issued[r.Name]; !at.IsZero() {
			age = fmt.Sprintf(", issued %s ago,", now.Sub(at).Round(time.Minute))
		}
		const renew = "Run `kubectl xylem register %s --member-kubeconfig FILE` again. The command requests a token that the manager renews."
		switch left := ends.Sub(now); {
		case left <= 0:
			found = append(found, Problem(Error, CheckTokens, r.Name, fmt.Sprintf("the manager's token%s expired %s ago", age, (-left).Round(time.Minute)), fmt.Sprintf(renew, r.Name)))
		case left < tokenSoon && !renewed:
			found = append(found, Problem(Warning, CheckTokens, r.Name, fmt.Sprintf("the manager's token%s expires in %s, and the manager doesn't renew it", age, left.Round(time.Minute)), fmt.Sprintf(renew, r.Name)))
		}
		if earliest.IsZero() || ends.Before(earliest) {
			earliest = ends
		}
	}
	switch {
	case len(found) > 0:
		return found
	case earliest.IsZero():
		return []Finding{Passed(CheckTokens, "", "no credentials for members are known to expire")}
	}
	return []Finding{Passed(CheckTokens, "", "no token for a member expires within %s", earliest.Sub(now).Round(time.Minute))}
}
