// Reads objects of Kubernetes, one JSON document after the other on stdin, as its API server does with what
// is submitted: strict decoding, defaults, and the checks of a create. Prints one line for each fault; exit
// code 1 if there is any.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/registry/batch/job"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	faults := 0
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		for _, fault := range check(document) {
			fmt.Println(fault)
			faults++
		}
	}
	if faults > 0 {
		os.Exit(1)
	}
	fmt.Println("accepted")
}

func check(document []byte) []string {
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	object, _, err := codecs.UniversalDecoder().Decode(document, nil, nil)
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	for _, fault := range validate(object) {
		faults = append(faults, fault.Error())
	}
	return faults
}

func validate(object runtime.Object) field.ErrorList {
	switch value := object.(type) {
	case *batch.Job:
		ctx := genericapirequest.WithNamespace(context.Background(), value.Namespace)
		rest.FillObjectMetaSystemFields(metav1.Object(value))
		job.Strategy.PrepareForCreate(ctx, value)
		return job.Strategy.Validate(ctx, value)
	case *core.Service:
		families := []core.IPFamily{core.IPv4Protocol}
		policy := core.IPFamilyPolicySingleStack
		value.Spec.IPFamilies, value.Spec.IPFamilyPolicy = families, &policy // the API server's allocator
		value.Spec.ClusterIPs = []string{value.Spec.ClusterIP}
		return validation.ValidateServiceCreate(value)
	}
	return field.ErrorList{field.NotSupported(field.NewPath("kind"), fmt.Sprintf("%T", object), []string{"Job", "Service"})}
}
