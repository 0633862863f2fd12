package main

import (
	"fmt"
	"slices"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// applyFlowControl enables API priority and fairness, with the flow schemas and priority levels that every kube-apiserver creates
// at its first start. The user of the bench is in global-default. A program in a cluster would have informers for the objects
// there; here the informers have the same objects without a cluster.
func applyFlowControl(config *genericapiserver.Config) (informers.SharedInformerFactory, error) {
	client, err := kubernetes.NewForConfig(config.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	// A factory returns the informer that it has for a type to all later callers.
	factory.InformerFor(&flowcontrolv1.FlowSchema{}, informer(&flowcontrolv1.FlowSchema{}, flowSchemas()))
	factory.InformerFor(&flowcontrolv1.PriorityLevelConfiguration{}, informer(&flowcontrolv1.PriorityLevelConfiguration{}, priorityLevels()))
	config.FlowControl = flowcontrol.New(factory, client.FlowcontrolV1(), config.MaxRequestsInFlight+config.MaxMutatingRequestsInFlight)
	return factory, nil
}

// informer returns a function that makes an informer for constant objects.
func informer(kind, objects runtime.Object) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
	return func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(still{objects}, kind, 0, cache.Indexers{})
	}
}

// still is a ListerWatcher of constant objects.
type still struct{ objects runtime.Object }

func (s still) List(metav1.ListOptions) (runtime.Object, error) {
	return s.objects.DeepCopyObject(), nil
}

// Watch returns a watch without events.
func (s still) Watch(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

// IsWatchListSemanticsUnSupported makes the informer use a list instead of a watch that begins with the state.
func (s still) IsWatchListSemanticsUnSupported() bool { return true }

// flowSchemas returns the flow schemas with the status that the controller would write: that their priority level exists.
func flowSchemas() *flowcontrolv1.FlowSchemaList {
	list := &flowcontrolv1.FlowSchemaList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, one := range slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas) {
		s := one.DeepCopy()
		s.Status.Conditions = []flowcontrolv1.FlowSchemaCondition{{
			Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, Reason: "Found",
			Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", s.Spec.PriorityLevelConfiguration.Name),
		}}
		list.Items = append(list.Items, *s)
	}
	return list
}

func priorityLevels() *flowcontrolv1.PriorityLevelConfigurationList {
	list := &flowcontrolv1.PriorityLevelConfigurationList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, level := range slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations) {
		list.Items = append(list.Items, *level.DeepCopy())
	}
	return list
}
