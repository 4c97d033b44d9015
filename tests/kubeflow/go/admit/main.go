// Reads a compiled pipeline into KFP's own types, as the API server does when it is uploaded, and checks
// its names and quantities with Kubernetes' own functions. Prints one line for each fault; exit code 1 if
// there is any.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/kubeflow/pipelines/api/v2alpha1/go/pipelinespec"
	"github.com/kubeflow/pipelines/kubernetes_platform/go/kubernetesplatform"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	sigsyaml "sigs.k8s.io/yaml"
)

// Argo adds "-" and five characters to the name of a workflow, which is the value of a label.
const maxName = validation.LabelValueMaxLength - 6

var faults []string

func fault(format string, values ...any) {
	faults = append(faults, fmt.Sprintf(format, values...))
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: admit PIPELINE.yaml")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	documents := split(text)
	if len(documents) == 0 || len(documents) > 2 {
		fault("there are %d documents: a pipeline, and what is said of its pods", len(documents))
	}
	for number, document := range documents {
		json, err := sigsyaml.YAMLToJSON(document)
		if err != nil {
			fault("document %d: %v", number+1, err)
			continue
		}
		if number == 0 {
			checkPipeline(json)
		} else {
			checkPlatform(json)
		}
	}
	for _, line := range faults {
		fmt.Println(line)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
	fmt.Println("accepted")
}

func split(text []byte) [][]byte {
	var documents [][]byte
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var value map[string]any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			fault("YAML: %v", err)
			return documents
		}
		document, err := yaml.Marshal(value)
		if err != nil {
			fault("YAML: %v", err)
			return documents
		}
		documents = append(documents, document)
	}
}

func checkPipeline(json []byte) {
	spec := &pipelinespec.PipelineSpec{}
	if err := protojson.Unmarshal(json, spec); err != nil {
		fault("PipelineSpec: %v", err)
		return
	}
	if version := spec.GetSchemaVersion(); version != "2.1.0" {
		fault("schemaVersion is %q, and the server takes 2.1.0", version)
	}
	name := spec.GetPipelineInfo().GetName()
	for _, reason := range validation.IsDNS1123Label(name) {
		fault("pipelineInfo.name %q: %s", name, reason)
	}
	if len(name) > maxName {
		fault("pipelineInfo.name %q has more than %d characters", name, maxName)
	}
	deployment := &pipelinespec.PipelineDeploymentConfig{}
	into(spec.GetDeploymentSpec(), deployment, "deploymentSpec")
	for label, executor := range deployment.GetExecutors() {
		container := executor.GetContainer()
		if container == nil && executor.GetImporter() == nil {
			fault("executor %s: neither a container nor an importer", label)
			continue
		}
		checkResources(label, container.GetResources())
	}
	components := spec.GetComponents()
	checkDag("root", spec.GetRoot().GetDag(), components, deployment)
	for component, value := range components {
		if dag := value.GetDag(); dag != nil {
			checkDag(component, dag, components, deployment)
		}
	}
	for parameter, value := range spec.GetRoot().GetInputDefinitions().GetParameters() {
		if value.GetDefaultValue() == nil && !value.GetIsOptional() {
			fault("parameter %s has no default", parameter)
		}
	}
}

func checkDag(
	place string,
	dag *pipelinespec.DagSpec,
	components map[string]*pipelinespec.ComponentSpec,
	deployment *pipelinespec.PipelineDeploymentConfig,
) {
	for name, task := range dag.GetTasks() {
		for _, reason := range validation.IsDNS1123Label(name) {
			fault("%s, task %q: %s", place, name, reason)
		}
		reference := task.GetComponentRef().GetName()
		component, known := components[reference]
		if !known {
			fault("%s, task %q: there is no component %q", place, name, reference)
			continue
		}
		if label := component.GetExecutorLabel(); label != "" {
			if _, known := deployment.GetExecutors()[label]; !known {
				fault("%s, task %q: there is no executor %q", place, name, label)
			}
		}
		for _, other := range task.GetDependentTasks() {
			if _, known := dag.GetTasks()[other]; !known {
				fault("%s, task %q waits for %q, which there is not", place, name, other)
			}
		}
		for input, value := range task.GetInputs().GetParameters() {
			if value.GetRuntimeValue() != nil && value.GetRuntimeValue().GetConstantValue() != nil {
				fault("%s, task %q, input %q: a constantValue, which the driver does not read", place, name, input)
			}
			checkSource(place, name, input, value.GetTaskOutputParameter().GetProducerTask(),
				value.GetTaskOutputParameter().GetOutputParameterKey(), dag, components, true)
		}
		for input, value := range task.GetInputs().GetArtifacts() {
			checkSource(place, name, input, value.GetTaskOutputArtifact().GetProducerTask(),
				value.GetTaskOutputArtifact().GetOutputArtifactKey(), dag, components, false)
		}
	}
}

func checkSource(
	place, task, input, producer, key string,
	dag *pipelinespec.DagSpec,
	components map[string]*pipelinespec.ComponentSpec,
	isParameter bool,
) {
	if producer == "" {
		return
	}
	source, known := dag.GetTasks()[producer]
	if !known {
		fault("%s, task %q, input %q: there is no task %q", place, task, input, producer)
		return
	}
	outputs := components[source.GetComponentRef().GetName()].GetOutputDefinitions()
	_, isThere := outputs.GetArtifacts()[key]
	if isParameter {
		_, isThere = outputs.GetParameters()[key]
	}
	if !isThere {
		fault("%s, task %q, input %q: %q has no output %q", place, task, input, producer, key)
	}
}

func checkResources(
	label string, resources *pipelinespec.PipelineDeploymentConfig_PipelineContainerSpec_ResourceSpec,
) {
	quantities := map[string]string{
		"cpu request":    resources.GetResourceCpuRequest(),
		"cpu limit":      resources.GetResourceCpuLimit(),
		"memory request": resources.GetResourceMemoryRequest(),
		"memory limit":   resources.GetResourceMemoryLimit(),
		"accelerators":   resources.GetAccelerator().GetResourceCount(),
	}
	names := make([]string, 0, len(quantities))
	for name := range quantities {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if quantity := quantities[name]; quantity != "" {
			if _, err := resource.ParseQuantity(quantity); err != nil {
				fault("executor %s, %s %q: %v", label, name, quantity, err)
			}
		}
	}
}

func checkPlatform(json []byte) {
	platforms := &pipelinespec.PlatformSpec{}
	if err := protojson.Unmarshal(json, platforms); err != nil {
		fault("PlatformSpec: %v", err)
		return
	}
	for name, platform := range platforms.GetPlatforms() {
		if name != "kubernetes" {
			fault("platform %q: the server knows kubernetes", name)
			continue
		}
		for label, executor := range platform.GetDeploymentSpec().GetExecutors() {
			config := &kubernetesplatform.KubernetesExecutorConfig{}
			removeNewerFields(structpb.NewStructValue(executor))
			into(executor, config, "kubernetes, executor "+label)
			for _, mount := range config.GetPvcMount() {
				for _, reason := range validation.IsDNS1123Subdomain(mount.GetConstant()) {
					fault("executor %s, claim %q: %s", label, mount.GetConstant(), reason)
				}
			}
			for key, value := range config.GetNodeSelector().GetLabels() {
				for _, reason := range validation.IsQualifiedName(key) {
					fault("executor %s, node selector %q: %s", label, key, reason)
				}
				for _, reason := range validation.IsValidLabelValue(value) {
					fault("executor %s, node selector %q: %s", label, value, reason)
				}
			}
		}
	}
}

// Fields of kfp's that the published types are older than; newer servers read them.
var newerFields = []string{"pvcNameParameter", "secretNameParameter", "optional"}

func removeNewerFields(value *structpb.Value) {
	for _, item := range value.GetListValue().GetValues() {
		removeNewerFields(item)
	}
	fields := value.GetStructValue().GetFields()
	for _, name := range newerFields {
		delete(fields, name)
	}
	for _, item := range fields {
		removeNewerFields(item)
	}
}

func into(from *structpb.Struct, message proto.Message, place string) {
	json, err := protojson.Marshal(from)
	if err == nil {
		err = protojson.Unmarshal(json, message)
	}
	if err != nil {
		fault("%s: %v", place, err)
	}
}
