# The bucket of the object store, and the user of the application, who may use that bucket alone.
# Safe to repeat. It ends well only if that user can list the bucket.
set -eu
until mc alias set root http://store:9000 "$MINIO_ROOT_USER" "$MINIO_ROOT_PASSWORD"; do sleep 1; done
mc mb --ignore-existing root/extraction
mc admin policy create root extraction /store_policy.json
mc admin user add root "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY"
# An error where it is attached already; the last line tells whether it is.
mc admin policy attach root extraction --user "$AWS_ACCESS_KEY_ID" || true
mc alias set ours http://store:9000 "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY"
mc ls ours/extraction
