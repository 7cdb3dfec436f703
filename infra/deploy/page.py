"""The page, from web/ into the bucket that CloudFront reads."""

import mimetypes
import time
from pathlib import Path

import boto3

# Where browsers and CloudFront ask again whether it has changed.
CACHE_CONTROL = "public, max-age=60"
TYPES = {".js": "text/javascript", ".webmanifest": "application/manifest+json", ".woff2": "font/woff2"}


def files(folder):
    """Every file of the page: its key, and where it lies."""
    found = [path for path in sorted(Path(folder).rglob("*")) if path.is_file() and not path.name.startswith(".")]
    return {path.relative_to(folder).as_posix(): path for path in found}


def content_type(path):
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") or kind.endswith("json") else kind


def upload(folder, bucket):
    """Puts the page there and takes away what it no longer has. How many files there are now."""
    client, page = boto3.client("s3"), files(folder)
    for key, path in page.items():
        client.put_object(
            Bucket=bucket, Key=key, Body=path.read_bytes(), ContentType=content_type(path), CacheControl=CACHE_CONTROL
        )
    for listed in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for found in listed.get("Contents", []):
            if found["Key"] not in page:
                client.delete_object(Bucket=bucket, Key=found["Key"])
    return len(page)


def invalidate(distribution):
    """Lets CloudFront forget the page that it has."""
    batch = {"Paths": {"Quantity": 1, "Items": ["/*"]}, "CallerReference": str(time.time())}
    boto3.client("cloudfront").create_invalidation(DistributionId=distribution, InvalidationBatch=batch)
