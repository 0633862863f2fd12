package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// Informers whose server is ended by signals and started again, while others write, continue after their last events. None lists
// again, none begins again with sendInitialEvents, and all have what the server has in the end.
func TestClientGoInformersUnderSignalsNeverListAgain(t *testing.T) {
	const informers, writers, ends = 8, 4, 3
	hello := start(t)
	type one struct {
		cache.SharedIndexInformer
		sent harness.Recorder
	}
	all := make([]*one, informers)
	for i := range all {
		o, c := new(one), hello.Config()
		o.sent.Record(c)
		lw := cache.NewListWatchFromClient(typed(t, c), "widgets", metav1.NamespaceAll, fields.Everything())
		o.SharedIndexInformer = cache.NewSharedIndexInformer(lw, &Widget{}, 0, cache.Indexers{})
		all[i] = o
		var events seen
		run(withCheckedLog(t), t, o.SharedIndexInformer, &events)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writing sync.WaitGroup
	for i := range writers {
		client := typed(t, hello.Config())
		writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ { // a write that fails, because there is no server, is lost
				_ = client.Post().Namespace(namespace).Resource("widgets").Body(newWidget(fmt.Sprintf("w%d-%d", i, n), 1)).Do(t.Context()).Error()
				if n%3 == 0 {
					_ = client.Delete().Namespace(namespace).Resource("widgets").Name(fmt.Sprintf("w%d-%d", i, n-1)).Do(t.Context()).Error()
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	for range ends {
		time.Sleep(300 * time.Millisecond) // writes and events are under way
		hello = restart(t, hello)
	}
	cancel()
	writing.Wait()
	client := typed(t, hello.Config())
	post(t, client, newWidget("last", 1))
	list := new(WidgetList)
	if err := client.Get().Resource("widgets").Do(t.Context()).Into(list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) < 20 {
		t.Errorf("only %d widgets were written", len(list.Items))
	}
	for i, o := range all {
		harness.Eventually(t, fmt.Sprintf("informer %d has what the server has", i), func() bool {
			for _, w := range list.Items {
				obj, ok, err := o.GetStore().GetByKey(namespace + "/" + w.Name)
				if err != nil || !ok || obj.(*Widget).ResourceVersion != w.ResourceVersion {
					return false
				}
			}
			return len(o.GetStore().ListKeys()) == len(list.Items)
		})
		if lists, begun, watches := o.sent.Count(isList), o.sent.Count(isWatchList), o.sent.Count(isWatch); lists != 0 || begun != 1 || watches < 2 {
			t.Errorf("informer %d listed %d times, began %d times with sendInitialEvents, and watched %d times", i, lists, begun, watches)
		}
	}
}
