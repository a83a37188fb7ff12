package doctor

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// CheckTokens is the name of this check.
const CheckTokens Check = "Tokens"

var tokensCheck = checkOf[*Facts]{name: CheckTokens, judge: infallible(judgeTokens)}

// tokenSoon is how long before a token's expiry doctor warns if the manager does not renew the
// token.
const tokenSoon = 12 * time.Hour

// judgeTokens checks when the manager's tokens for members expire.
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
			found = append(found, problem(Error, fmt.Sprintf("the manager's token%s expired %s ago", age, (-left).Round(time.Minute)), fmt.Sprintf(renew, r.Name)).ofMember(r.Name))
		case left < tokenSoon && !renewed:
			found = append(found, problem(Warning, fmt.Sprintf("the manager's token%s expires in %s, and the manager doesn't renew it", age, left.Round(time.Minute)), fmt.Sprintf(renew, r.Name)).ofMember(r.Name))
		}
		if earliest.IsZero() || ends.Before(earliest) {
			earliest = ends
		}
	}
	switch {
	case len(found) > 0:
		return found
	case earliest.IsZero():
		return []Finding{passed("no credentials for members are known to expire")}
	}
	return []Finding{passed("no token for a member expires within %s", earliest.Sub(now).Round(time.Minute))}
}
