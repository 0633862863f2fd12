// Package webhook authenticates bearer tokens by a webhook, which gets a TokenReview and answers with the user:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#webhook-token-authentication.
//
//	cfg, err := client.Kubeconfig("/etc/keelson/authentication.kubeconfig", "")
//	tokens, err := webhook.New(cfg, webhook.Options{})
//	host.OnClose(tokens.Close)
//	err = host.Authenticate(authn.TokenWebhook, authn.BearerToken(tokens))
//
// # How long an answer counts
//
// A token that the webhook refuses from now on still works for at most Options.Success and the Success of the server's own cache
// (Policy.TokenCache) together, by default for 2 minutes and 10 seconds. If both are negative, the webhook is asked for every request.
// A token that was refused is refused for up to Options.Failure. Watches that have begun go on to their end.
//
// # Bounds
//
// A webhook that hangs costs the requests with unknown tokens the time of Options.Timeout and Options.Attempts, together with the
// pauses at most authn.DefaultLookupTime, and no other requests. Requests with the same token share a call. An answer has at most
// [MaxAnswer] bytes. A redirect to another server is refused.
package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/runtime/review"
)

// Versions of TokenReview. In both a TokenReview has the same fields.
const (
	V1      = "v1"
	V1beta1 = "v1beta1"
)

// TokenReviews is the path of TokenReviews in a server of the Kubernetes API.
const TokenReviews = "/apis/authentication.k8s.io/v1/tokenreviews"

// MaxAnswer is the default of Options.Client.MaxAnswer, in bytes.
const MaxAnswer = review.MaxAnswer

// Options are the options of New. The zero values stand for the defaults, which are those of kube-apiserver, except for Version.
type Options struct {
	// Version is the version of the TokenReviews in the group authentication.k8s.io; "" means V1. The flag of kube-apiserver has
	// the default v1beta1.
	Version string
	// Path is below the URL of the Config, such as [TokenReviews]; "" means that URL itself.
	Path string
	// Audiences are the audiences for which a token is valid if the webhook does not say it: those of the server. They count only
	// for a request with audiences (authn.AudiencesFrom).
	Audiences []string
	// Success and Failure are how long a user is remembered, and that a token has none; 0 means 2 minutes, less than 0 not at all.
	// Errors are not remembered.
	Success, Failure time.Duration
	// Cache are the bounds of the calls and of what is remembered. Its Success and Failure are not used.
	Cache authn.CacheOptions
	// Attempts is how often a TokenReview is sent if the webhook fails; 0 means 5. It is sent again if the connection is lost, and
	// after answers with the codes 429, 500 and 504 and all that have Retry-After.
	Attempts int
	// Backoff is the time before the second attempt; 0 means 500 ms. It grows by half with each further attempt.
	Backoff time.Duration
	// Timeout bounds an attempt; 0 means 10 s.
	Timeout time.Duration
	// Client are options of the connections. Its Timeout and Retries are those of the webhook.
	Client client.Options
}

// Authenticator authenticates tokens by a webhook. Make one with New, and Close it. All methods may be called concurrently.
type Authenticator struct {
	authn.TokenAuthenticator // remembers answers
	hook                     *review.Webhook
}

// New returns an authenticator for the webhook of cfg. The error names the wrong field of cfg or of the options. New connects to
// nothing.
func New(cfg client.Config, o Options) (*Authenticator, error) {
	if o.Version != "" && o.Version != V1 && o.Version != V1beta1 {
		return nil, fmt.Errorf("authentication webhook: Options.Version is %q: want %s or %s", o.Version, V1, V1beta1)
	}
	version := "authentication.k8s.io/" + cmp.Or(o.Version, V1)
	hook, err := review.New(cfg, review.Options{
		Name: "authentication webhook", Kind: reviewKind, APIVersion: version, Path: o.Path,
		Attempts: o.Attempts, Backoff: o.Backoff, Timeout: o.Timeout, Client: o.Client,
	})
	if err != nil {
		return nil, err
	}
	const remembered = 2 * time.Minute
	o.Cache.Success, o.Cache.Failure = cmp.Or(o.Success, remembered), cmp.Or(o.Failure, remembered)
	asks := &asker{hook: hook, version: version, audiences: slices.Clone(o.Audiences)}
	return &Authenticator{TokenAuthenticator: authn.CacheTokens(asks, o.Cache), hook: hook}, nil
}

// Close ends the calls in progress, which fail, and closes the connections. From then on Ready fails: tokens that are not remembered are
// refused.
func (a *Authenticator) Close() { a.hook.Close() }

// Ready fails after Close. Until then it returns nil: it does not ask the webhook, whose failure would make the server fail, too.
func (a *Authenticator) Ready(ctx context.Context) error { return a.hook.Ready(ctx) }

// asker asks the webhook.
type asker struct {
	hook      *review.Webhook
	version   string
	audiences []string
}

// AuthenticateToken implements authn.TokenAuthenticator. An error, which may have a text of the webhook, does not have the token.
func (a *asker) AuthenticateToken(ctx context.Context, token string) (*authn.Response, error) {
	resp, err := a.review(ctx, token)
	return resp, withoutToken(err, token)
}

// shortToken is the length below which a token is not replaced in a text: words may have it, and what is left of them shows it.
const shortToken = 8

var (
	errHasToken = errors.New("authentication webhook: the text of the error has the token, and is withheld")
	errOddToken = errors.New("authentication webhook: the text of the error is withheld, because the token has characters that a text may show in another form")
)

// withoutToken returns an error whose text does not have the token.
func withoutToken(err error, token string) error {
	switch {
	case err == nil:
		return nil
	case strings.ContainsFunc(token, isOdd):
		return errOddToken
	case !strings.Contains(err.Error(), token):
		return err
	case len(token) < shortToken:
		return errHasToken
	}
	return errors.New(strings.ReplaceAll(err.Error(), token, "[the token]"))
}

// isOdd reports whether tokens do not have a character (RFC 6750, section 2.1), so that a text may have it escaped or replaced.
func isOdd(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-._~+/=:", c)
}

// review asks the webhook for the user of a token.
func (a *asker) review(ctx context.Context, token string) (*authn.Response, error) {
	wanted := authn.AudiencesFrom(ctx)
	body, err := json.Marshal(tokenReview{Kind: reviewKind, APIVersion: a.version, Spec: &spec{Token: token, Audiences: wanted}})
	if err != nil {
		return nil, fmt.Errorf("authentication webhook: %w", err)
	}
	var answer tokenReview
	if err := a.hook.Ask(ctx, body, &answer); err != nil {
		return nil, err
	}
	audiences := answer.Status.Audiences
	if len(audiences) == 0 {
		audiences = a.audiences
	}
	common := slices.DeleteFunc(slices.Clone(wanted), func(w string) bool { return !slices.Contains(audiences, w) })
	switch {
	case wanted != nil && len(common) == 0:
		return nil, nil
	case answer.Status.Authenticated && answer.Status.User.Username == "":
		return nil, errors.New("authentication webhook: the answer authenticates a user without a name")
	case answer.Status.Authenticated:
		return &authn.Response{User: answer.Status.User.user(), Audiences: common}, nil
	case answer.Status.Error != "":
		return nil, errors.New(answer.Status.Error)
	}
	return nil, nil
}

const reviewKind = "TokenReview"

// tokenReview is a TokenReview of authentication.k8s.io, in v1 and v1beta1.
type tokenReview struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   struct{} `json:"metadata"`
	Spec       *spec    `json:"spec,omitempty"`
	Status     status   `json:"status"`
}

type spec struct {
	Token     string   `json:"token,omitempty"`
	Audiences []string `json:"audiences,omitempty"`
}

type status struct {
	Authenticated bool     `json:"authenticated,omitempty"`
	User          userInfo `json:"user,omitzero"`
	Audiences     []string `json:"audiences,omitempty"`
	Error         string   `json:"error,omitempty"`
}

type userInfo struct {
	Username string              `json:"username,omitempty"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// user returns a user, which shares nothing that changes.
func (u userInfo) user() authn.User {
	return authn.User{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: maps.Clone(u.Extra)}
}
