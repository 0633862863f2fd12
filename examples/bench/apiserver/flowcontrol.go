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

// applyFlowControl turns API priority and fairness on, with the flow schemas and priority levels that every
// kube-apiserver makes at its first start: the user of the bench is in global-default. A program beside a cluster
// would have informers on the objects there; these have the same objects without one.
func applyFlowControl(config *genericapiserver.Config) (informers.SharedInformerFactory, error) {
	client, err := kubernetes.NewForConfig(config.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	// An informer that a factory has for a type is the one that it gives to all who ask for it later.
	factory.InformerFor(&flowcontrolv1.FlowSchema{}, informer(&flowcontrolv1.FlowSchema{}, flowSchemas()))
	factory.InformerFor(&flowcontrolv1.PriorityLevelConfiguration{}, informer(&flowcontrolv1.PriorityLevelConfiguration{}, priorityLevels()))
	config.FlowControl = flowcontrol.New(factory, client.FlowcontrolV1(), config.MaxRequestsInFlight+config.MaxMutatingRequestsInFlight)
	return factory, nil
}

// informer makes an informer on objects that never change.
func informer(kind, objects runtime.Object) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
	return func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(still{objects}, kind, 0, cache.Indexers{})
	}
}

// still is a ListerWatcher of objects that never change.
type still struct{ objects runtime.Object }

func (s still) List(metav1.ListOptions) (runtime.Object, error) {
	return s.objects.DeepCopyObject(), nil
}

// Watch shows nothing until it is stopped.
func (s still) Watch(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

// IsWatchListSemanticsUnSupported tells the informer to list, and not to watch from nothing.
func (s still) IsWatchListSemanticsUnSupported() bool { return true }

// flowSchemas have the status that the controller would write into them: that their priority level is there.
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
