"""Makes the queues of template.yaml in a local SQS, as far as sam local needs them. Those that are there stay."""

import json
import sys

import boto3

VISIBILITY_S = {"Bookings": 200, "Line": 200, "Pushes": 240, "Gone": 60}
MAX_RECEIVES = 5


def main(endpoint):
    sqs = boto3.client(
        "sqs", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="local", aws_secret_access_key="local"
    )
    for name, seconds in VISIBILITY_S.items():
        attributes = {"VisibilityTimeout": str(seconds)}
        if name in ("Bookings", "Line"):
            dead = sqs.create_queue(QueueName=f"jari-{name}DeadLetters")["QueueUrl"]
            arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
            redrive = {"deadLetterTargetArn": arn, "maxReceiveCount": MAX_RECEIVES}
            attributes["RedrivePolicy"] = json.dumps(redrive)
        sqs.create_queue(QueueName=f"jari-{name}", Attributes=attributes)


if __name__ == "__main__":
    main(sys.argv[1])
