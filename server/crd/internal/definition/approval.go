package definition

import (
	"fmt"
	"net/url"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProtectedGroup reports whether a group belongs to the Kubernetes community, so that a definition in it needs the annotation
// api-approved.kubernetes.io.
func ProtectedGroup(group string) bool {
	for _, domain := range []string{"k8s.io", "kubernetes.io"} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

// Approval is the approval of an API according to the annotation api-approved.kubernetes.io.
type Approval int

// These are the approvals.
const (
	InvalidApproval Approval = iota // neither of the others
	MissingApproval
	Unapproved // a text that begins with "unapproved"
	Approved   // the URL of the approval
)

// ApprovalOf returns the approval of an API according to its annotations, and a message that describes it.
func ApprovalOf(annotations map[string]string) (approval Approval, message string) {
	const see = "see https://github.com/kubernetes/enhancements/pull/1111"
	text := annotations[apiextensionsv1.KubeAPIApprovedAnnotation]
	at, err := url.ParseRequestURI(text)
	switch {
	case text == "":
		return MissingApproval, fmt.Sprintf("protected groups must have approval annotation %q, %s", apiextensionsv1.KubeAPIApprovedAnnotation, see)
	case strings.HasPrefix(text, "unapproved"):
		return Unapproved, fmt.Sprintf("not approved: %q", text)
	case err == nil && at.Host != "" && at.Scheme != "":
		return Approved, fmt.Sprintf("approved in %s", text)
	}
	return InvalidApproval, fmt.Sprintf("protected groups must have approval annotation %q with either a URL or a reason starting with \"unapproved\", %s",
		apiextensionsv1.KubeAPIApprovedAnnotation, see)
}

// SetApproval sets the condition KubernetesAPIApprovalPolicyConformant of a definition in a protected group, in place, and
// reports whether that changed anything. A definition in another group never has the condition, because the group never changes.
func SetApproval(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool {
	if !ProtectedGroup(crd.Spec.Group) {
		return false
	}
	approval, message := ApprovalOf(crd.Annotations)
	condition := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant, Status: apiextensionsv1.ConditionFalse, Message: message,
	}
	switch approval {
	case Approved:
		condition.Status, condition.Reason = apiextensionsv1.ConditionTrue, "ApprovedAnnotation"
	case Unapproved:
		condition.Reason = "UnapprovedAnnotation"
	case MissingApproval:
		condition.Reason = "MissingAnnotation"
	default:
		condition.Reason = "InvalidAnnotation"
	}
	return SetCondition(crd, condition, now)
}
