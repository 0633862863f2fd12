package authz

import (
	"cmp"
	"context"
	"encoding/json"
)

// Object names an object of a policy, such as a binding, or a subject of a binding. Namespace is "" if it has none.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Grant is one reason why a user may make a request: a rule of a role that a binding grants to a subject. An authorizer without
// bindings or roles leaves these fields nil. Rule is the part of the rule that is for resources, and PathRule the one that is for
// paths; a valid rule has one of them. What a Grant refers to is shared and must not be changed.
type Grant struct {
	Binding  *Object       `json:"binding,omitempty"`
	Role     *Object       `json:"role,omitempty"`
	Subject  *Object       `json:"subject,omitempty"`
	Rule     *ResourceRule `json:"rule,omitempty"`
	PathRule *PathRule     `json:"pathRule,omitempty"`
	// Lacks is what the Grant lacks to allow the request; it is only set in Explanation.Nearest.
	Lacks Lack `json:"lacks,omitempty"`
}

// Lack is what a grant lacks to allow a request.
type Lack string

// What a grant may lack. The first five are of a grant that the user has, and that would allow the request if its rule had this one
// value more, or if the binding were in another namespace. With LacksSubject the binding would allow the request if the user were one
// of its subjects, and with LacksBinding the role, if a binding granted it.
const (
	LacksVerb         Lack = "verb"
	LacksResourceName Lack = "resourceName"
	LacksResource     Lack = "resource" // or the path
	LacksAPIGroup     Lack = "apiGroup"
	LacksNamespace    Lack = "namespace"
	LacksSubject      Lack = "subject"
	LacksBinding      Lack = "binding"
)

// Explanation says why an authorizer decides as it does. It is for operators: it tells what other users may do.
type Explanation struct {
	Verdict Verdict `json:"-"`
	Reason  string  `json:"-"` // that of Authorize
	Err     error   `json:"-"` // that of Authorize
	// Authorizer is the name of the member of a [Live] that allows or denies, and if that member is a Live, the name of its own
	// member. It is "" if none does or if it has no name.
	Authorizer string `json:"authorizer,omitempty"`
	// Grant allows the request. It is nil if the request is not allowed, or if the authorizer that allows it has no grants.
	Grant *Grant `json:"grant,omitempty"`
	// Nearest are grants that would have allowed the request, but for one thing. It is empty if the request is allowed.
	Nearest []Grant `json:"nearest,omitempty"`
}

// Explainer is an optional interface of an [Authorizer] that can say more than the reason of a verdict. [Union], [Live],
// [ForGroup], [Plain] and [Observed] implement it, whether or not their members do.
type Explainer interface {
	// Explain returns why Authorize decides as it does.
	Explain(ctx context.Context, a Attributes) Explanation
}

// Explain returns why an authorizer decides on a request as it does. If the authorizer is not an Explainer, the explanation has the
// verdict and its reason only.
func Explain(ctx context.Context, by Authorizer, a Attributes) Explanation {
	if e, ok := by.(Explainer); ok {
		return e.Explain(ctx, a)
	}
	verdict, reason, err := by.Authorize(ctx, a)
	return Explanation{Verdict: verdict, Reason: reason, Err: err}
}

// maxNearest is the maximum number of grants in the explanation of a union.
const maxNearest = 5

// Explain implements Explainer.
func (u *union) Explain(ctx context.Context, a Attributes) Explanation {
	var none opinions
	var nearest []Grant
	for i, m := range u.members {
		one := Explain(ctx, m, a)
		if one.Verdict != NoOpinion {
			if u.names != nil {
				one.Authorizer = cmp.Or(one.Authorizer, u.names[i].name)
			}
			if one.Verdict == Allow {
				one.Err = nil
			}
			return one
		}
		none.add(u, i, one.Reason, one.Err)
		nearest = append(nearest, one.Nearest[:min(len(one.Nearest), maxNearest-len(nearest))]...)
	}
	all := Explanation{Nearest: nearest}
	all.Reason, all.Err = none.result()
	return all
}

// Explain implements Explainer.
func (l *Live) Explain(ctx context.Context, a Attributes) Explanation {
	return Explain(ctx, l.Pin(ctx), a)
}

// Explain implements Explainer.
func (p Plain) Explain(ctx context.Context, a Attributes) Explanation {
	return Explain(ctx, p.Authorizer, a)
}

// Explain implements Explainer.
func (g *forGroup) Explain(ctx context.Context, a Attributes) Explanation {
	if !a.User.InGroup(g.group) {
		return Explanation{}
	}
	return Explain(ctx, g.next, a)
}

// Line returns the explanation as one line of JSON of at most limit bytes. The last of Nearest are left out if the line is too long
// with them, then all, then the rule of the grant, and at last the whole grant. If the authorizer's name alone is too long, the line
// is {}.
func (e Explanation) Line(limit int) string {
	for {
		line, err := json.Marshal(e)
		switch {
		case err == nil && len(line) <= limit:
			return string(line)
		case len(e.Nearest) > 0:
			e.Nearest = e.Nearest[:len(e.Nearest)-1]
		case e.Grant != nil && (e.Grant.Rule != nil || e.Grant.PathRule != nil):
			short := *e.Grant
			short.Rule, short.PathRule = nil, nil
			e.Grant = &short
		case e.Grant != nil:
			e.Grant = nil
		default:
			return "{}"
		}
	}
}
