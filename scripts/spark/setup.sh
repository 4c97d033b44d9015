#!/bin/sh
# Puts Beam's Spark job server, with Spark in it, into a folder, with checksums verified:
#   scripts/spark/setup.sh FOLDER
# FOLDER/job-server.jar: the job server, next to its own jars in FOLDER/job-server/.
# Needs Java 11 or 17, Maven (mvn) and a Maven repository. Does nothing the second time.
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
wanted=$(cat "$here"/pom.xml "$here"/jars.sha256 "$0" | sha256sum)

if [ "$(cat "$folder/.complete" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
for tool in java jar mvn; do
  command -v "$tool" >/dev/null || { echo "spark: there is no $tool here; install a JDK and Maven" >&2; exit 1; }
done
echo "spark: downloading Spark and Beam's job server into $folder (some minutes)" >&2
rm -rf "$folder/.complete" "$folder/job-server" "$folder/download"
mkdir -p "$folder/download"

mvn --quiet --batch-mode --strict-checksums --file "$here/pom.xml" \
  -Dmaven.repo.local="$folder/download/maven" dependency:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$folder/job-server"
(cd "$folder/job-server" && sha256sum --check --quiet --strict "$here/jars.sha256")

# A line of a manifest has 72 bytes; those that go on begin with a blank.
attribute() {
  name=$1
  shift
  printf ' %s' "$@" | fold -w 70 | sed "1s/^ /$name: /; 2,\$s/^/ /"
  echo
}
cd "$folder"
{
  echo "Main-Class: org.apache.beam.runners.spark.SparkJobServerDriver"
  # What Spark's own scripts open to it from Java 17 on (its JavaModuleOptions).
  attribute Add-Opens java.base/java.lang java.base/java.lang.invoke java.base/java.lang.reflect \
    java.base/java.io java.base/java.net java.base/java.nio java.base/java.util \
    java.base/java.util.concurrent java.base/java.util.concurrent.atomic java.base/sun.nio.ch \
    java.base/sun.nio.cs java.base/sun.security.action java.base/sun.util.calendar \
    java.security.jgss/sun.security.krb5
  attribute Class-Path job-server/*.jar
} > download/manifest
jar --create --file job-server.jar --manifest download/manifest

rm -rf download
echo "$wanted" > .complete
