package accounts

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	defaultLife = 3600             // seconds for which a token is valid by default
	leastLife   = 10 * time.Minute // a shorter one cannot be requested
	mostLife    = int64(1) << 32   // seconds

	// A token for a Pod that is requested for extendedFrom seconds is valid for extendedLife, because old clients do not read the token
	// again. Its use after the requested time is noted in audit events.
	extendedFrom = 3607
	extendedLife = 365 * 24 * time.Hour

	// issuedKey is the key of the annotation with the id of a token that was issued.
	issuedKey = "authentication.kubernetes.io/issued-credential-id"
)

// tokenKind is the kind of requests for tokens.
func tokenKind() schema.GroupVersionKind {
	return authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
}

// tokens is the subresource token of accounts. It implements registry.Creater.
type tokens struct {
	issuer    serviceaccount.Issuer
	audiences []string      // of a token for which no audiences are requested
	most      time.Duration // 0: no limit
	extend    bool
}

// Untabled implements registry.Untabled.
func (*tokens) Untabled() {}

// Identifying implements registry.Identifying.
func (*tokens) Identifying() {}

// Create implements registry.Creater. It answers a request with a token.
func (t *tokens) Create(call *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	req, ok := obj.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("wrong object passed to TokenRequest: %T", obj))
	}
	account, err := accountOf(call, req)
	if err != nil {
		return nil, err
	}
	if req.Spec.ExpirationSeconds == nil {
		life := int64(defaultLife)
		req.Spec.ExpirationSeconds = &life
	}
	if len(req.Spec.Audiences) == 0 {
		req.Spec.Audiences = slices.Clone(t.audiences)
	}
	if errs := validate(&req.Spec); len(errs) > 0 {
		return nil, apierrors.NewInvalid(tokenKind().GroupKind(), "", errs)
	}
	if err := t.issue(call, account, req); err != nil {
		return nil, err
	}
	return req, nil
}

// accountOf returns the account of the path, and gives the request its identity.
func accountOf(call *registry.Call, req *authenticationv1.TokenRequest) (*corev1.ServiceAccount, error) {
	name := call.Name
	if req.Name != "" && req.Name != name {
		return nil, apierrors.NewInvalid(tokenKind().GroupKind(), name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), req.Name, "must match the service account name if specified"),
		})
	}
	account, err := runtime.Read[*corev1.ServiceAccount](call).Get(call, call.Namespace, name, runtime.Live())
	if err != nil {
		return nil, err
	}
	if req.UID != "" && req.UID != account.UID {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: tokenKind().Group, Resource: tokenKind().Kind}, name,
			fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)", req.UID, account.UID))
	}
	req.Name, req.Namespace, req.UID, req.CreationTimestamp = account.Name, account.Namespace, account.UID, metav1.Now()
	return account, nil
}

// validate validates a request with its defaults. Its other fields are judged with the objects that they name.
func validate(spec *authenticationv1.TokenRequestSpec) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec", "expirationSeconds")
	switch life := *spec.ExpirationSeconds; {
	case life < int64(leastLife/time.Second):
		errs = append(errs, field.Invalid(at, life, "may not specify a duration less than 10 minutes"))
	case life > mostLife:
		errs = append(errs, field.Invalid(at, life, "may not specify a duration larger than 2^32 seconds"))
	}
	if len(spec.Attestations) > 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "attestations"), spec.Attestations, "attestations may only be specified with a webhook bound object reference"))
	}
	return errs
}

// issue sets the status of a valid request.
func (t *tokens) issue(call *registry.Call, account *corev1.ServiceAccount, req *authenticationv1.TokenRequest) error {
	now := time.Now()
	grant := serviceaccount.Grant{
		Namespace: account.Namespace, Account: serviceaccount.Ref{Name: account.Name, UID: account.UID}, Audiences: req.Spec.Audiences, Begin: now,
	}
	if ref := req.Spec.BoundObjectRef; ref != nil {
		if err := bind(call, account, ref, &grant); err != nil {
			return err
		}
	}
	if most := int64(t.most / time.Second); most > 0 && *req.Spec.ExpirationSeconds > most {
		call.Warn(fmt.Sprintf("requested expiration of %d seconds shortened to %d seconds", *req.Spec.ExpirationSeconds, most))
		*req.Spec.ExpirationSeconds = most
	}
	life := time.Duration(*req.Spec.ExpirationSeconds) * time.Second
	grant.Lifetime = life
	if t.extends(req, grant) {
		grant.Lifetime, grant.WarnAfter = extendedLife, life
	}
	token, id, err := t.issuer.Issue(grant)
	switch {
	case errors.Is(err, serviceaccount.ErrTooLarge):
		return apierrors.NewInvalid(tokenKind().GroupKind(), account.Name, field.ErrorList{
			field.TooLong(field.NewPath("spec", "audiences"), "", serviceaccount.MaxToken),
		})
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("failed to generate token: %w", err))
	}
	call.Annotate(issuedKey, serviceaccount.CredentialID(id))
	req.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(now.Add(life))}
	return nil
}

// extends reports whether a token is valid for longer than it is requested: one for a Pod and for audiences of this server.
func (t *tokens) extends(req *authenticationv1.TokenRequest, grant serviceaccount.Grant) bool {
	if !t.extend || grant.Pod == nil || *req.Spec.ExpirationSeconds != extendedFrom {
		return false
	}
	return !slices.ContainsFunc(req.Spec.Audiences, func(a string) bool { return !slices.Contains(t.audiences, a) })
}
