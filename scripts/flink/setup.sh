#!/bin/sh
# Puts Flink and Beam's Flink job server into a folder, with their checksums verified:
#   scripts/flink/setup.sh PYTHON FOLDER
# FOLDER/lib: Flink's jars. FOLDER/job-server.jar: the job server, next to its own in FOLDER/job-server/.
# Needs Java 11 or newer, Maven (mvn), a package index and a Maven repository. Does nothing the second time.
set -eu

python=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
wanted=$(cat "$here"/pom.xml "$here"/jars.sha256 "$here"/requirements.txt "$0" | sha256sum)

if [ "$(cat "$folder/.complete" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
for tool in java jar mvn; do
  command -v "$tool" >/dev/null || { echo "flink: there is no $tool here; install a JDK and Maven" >&2; exit 1; }
done
echo "flink: downloading Flink and Beam's job server into $folder (some minutes)" >&2
rm -rf "$folder/.complete" "$folder/lib" "$folder/job-server" "$folder/download"
mkdir -p "$folder/download"

"$python" -m pip download --quiet --require-hashes --no-deps --no-binary :all: --no-build-isolation \
  --dest "$folder/download" -r "$here/requirements.txt"
tar -xzf "$folder"/download/apache-flink-libraries-*.tar.gz -C "$folder/download"
mv "$folder"/download/apache-flink-libraries-*/deps/lib "$folder/lib"

mvn --quiet --batch-mode --strict-checksums --file "$here/pom.xml" \
  -Dmaven.repo.local="$folder/download/maven" dependency:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$folder/job-server"
(cd "$folder/job-server" && sha256sum --check --quiet --strict "$here/jars.sha256")
{
  echo "Main-Class: org.apache.beam.runners.flink.FlinkJobServerDriver"
  # A line of a manifest has 72 bytes; those that go on begin with a blank.
  (cd "$folder" && printf ' %s' job-server/*.jar) | fold -w 70 | sed '1s/^ /Class-Path: /; 2,$s/^/ /'
  echo
} > "$folder/download/manifest"
jar --create --file "$folder/job-server.jar" --manifest "$folder/download/manifest"

rm -rf "$folder/download"
echo "$wanted" > "$folder/.complete"
