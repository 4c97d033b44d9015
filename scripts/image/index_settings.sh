#!/bin/sh
# Writes this host's settings of package indexes into a folder, for the build to mount as secrets:
#   indexes       exports of pip's settings, uv's and the proxies'; points to the two below
#   uv_toml       uv's configuration file
#   certificates  the host's certificates, which may include those of a company's proxy
# They may hold passwords: the folder should be readable by the caller only, and be removed after the build.
# Usage: index_settings.sh FOLDER
set -eu

folder=$1
: >"$folder/indexes" && : >"$folder/uv_toml" && : >"$folder/certificates"

# quoted VALUE: quotes it as one shell word.
quoted() {
  printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"
}

# pip's settings, including those of its files: global.index-url='...' becomes PIP_INDEX_URL. pip prints a
# value like Python: in quotes, and with \\n between several.
${PYTHON3:-python3} -m pip config list 2>/dev/null |
  sed -nE 's/^(global|install|:env:)\.(index-url|extra-index-url|trusted-host|timeout|default-timeout|retries|proxy)=(.*)$/\2=\3/p' |
  while IFS='=' read -r name value; do
    variable=$(printf %s "$name" | tr 'a-z-' 'A-Z_')
    value=${value#?} && value=${value%?}
    value=$(printf %s "$value" | sed 's/\\n/ /g; s/^ //')
    printf 'export PIP_%s=%s\n' "$variable" "$(quoted "$value")"
  done >>"$folder/indexes"

for variable in UV_DEFAULT_INDEX UV_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_INSECURE_HOST \
  UV_INDEX_STRATEGY UV_HTTP_TIMEOUT http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  value=$(printenv "$variable" || true)
  if [ -n "$value" ]; then
    printf 'export %s=%s\n' "$variable" "$(quoted "$value")" >>"$folder/indexes"
  fi
done

for file in "${UV_CONFIG_FILE:-}" "${XDG_CONFIG_HOME:-$HOME/.config}/uv/uv.toml" /etc/uv/uv.toml; do
  if [ -n "$file" ] && [ -f "$file" ]; then
    cat "$file" >"$folder/uv_toml"
    echo 'export UV_CONFIG_FILE=/run/secrets/uv_toml' >>"$folder/indexes"
    break
  fi
done

for file in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
  /etc/ssl/cert.pem; do
  if [ -n "$file" ] && [ -f "$file" ]; then
    cat "$file" >"$folder/certificates"
    {
      echo 'export PIP_CERT=/run/secrets/certificates'
      echo 'export SSL_CERT_FILE=/run/secrets/certificates'
    } >>"$folder/indexes"
    break
  fi
done
