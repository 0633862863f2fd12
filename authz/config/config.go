package config

import (
	"fmt"

	v1 "github.com/keelson-dev/keelson/authz/config/internal/v1"
	"github.com/keelson-dev/keelson/runtime/configfile"
)

// Configuration is what a file says. Parse reads one.
type Configuration = v1.AuthorizationConfiguration

// Parts of a Configuration.
type (
	Entry      = v1.AuthorizerConfiguration // an authorizer
	Webhook    = v1.WebhookConfiguration    // configures a webhook
	Connection = v1.WebhookConnectionInfo   // says where a webhook is
	Condition  = v1.WebhookMatchCondition   // decides whether a webhook is asked
)

// Types of authorizers.
const (
	ABAC        = "ABAC"
	AlwaysAllow = "AlwaysAllow"
	AlwaysDeny  = "AlwaysDeny"
	Node        = "Node"
	RBAC        = "RBAC"
	WebhookType = "Webhook"
)

// types are those of a file.
func types() []string { return []string{ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, WebhookType} }

// MaxFile is the size of the largest file that Parse reads, in bytes.
const MaxFile = configfile.MaxBytes

// Parse reads a file in YAML or JSON. It is strict: fields that are not known, or twice, are errors. The error has the words of
// kube-apiserver. What the file says is not checked: see Validate.
func Parse(file []byte) (*Configuration, error) {
	c := &Configuration{}
	if len(file) == 0 {
		return c, nil
	}
	if err := configfile.Decode(file, "AuthorizationConfiguration", c); err != nil {
		return nil, fmt.Errorf("failed to load AuthorizationConfiguration from file: %w", err)
	}
	return c, nil
}
