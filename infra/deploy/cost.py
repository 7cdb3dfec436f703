"""What a deployment makes, and what that costs while nobody comes. jari plan tells what people cost."""

HOURS = 730
# List prices of us-east-1 in dollars as of autumn 2026; other regions are up to half dearer. Check them.
NODE_HOUR = {
    "cache.t4g.small": 0.0256,
    "cache.t4g.medium": 0.052,
    "cache.m7g.large": 0.1264,
    "cache.m7g.xlarge": 0.252,
    "cache.r7g.large": 0.1752,
    "cache.r7g.xlarge": 0.3496,
    "cache.r7g.2xlarge": 0.6984,
}
CAPACITY_UNIT_HOUR = 0.12
ENDPOINT_HOUR = 0.01
GB_SECOND = 0.0000166667
# The smallest instance that Lambda may choose, and what managing it adds; three always run.
INSTANCE_HOUR, MANAGED, LEAST_INSTANCES = 0.085, 1.15, 3
KEY_MONTH, SECRET_MONTH, ALARM_MONTH, QUEUE_CALLS_MONTH = 1.00, 0.40, 0.10, 1.00

ZONES = 2
ALARMS, ALARMS_OF_INSTANCES = 65, 3
# Relay looks once a second, in runs of 70 s each minute, with 512 MB; admit ends at once while no sale is near.
RELAY_GB_SECONDS = HOURS * 60 * 70 * 0.5


def rows(parameters):
    """What is made: words, and dollars a month (None where no price is known here)."""
    given = parameters.get
    has_instances = given("PollInstances") == "true"
    if not given("SubnetIds"):
        endpoint = ZONES * ENDPOINT_HOUR * HOURS
        yield "network: 2 private subnets, endpoints for SQS and Secrets Manager", 2 * endpoint
        if has_instances:
            yield "network: an endpoint for logs of instances", endpoint
    if not given("RedisSecret"):
        node, shards = given("CacheNodeType", "cache.m7g.large"), int(given("CacheShards", 1))
        price = NODE_HOUR.get(node)
        yield (
            f"Redis: {2 * shards} {node}, durability {given('CacheDurability', 'sync')}",
            price and 2 * shards * price * HOURS,
        )
    if not given("DatabaseSecret"):
        least = float(given("DatabaseMinCapacity", 0.5))
        most = given("DatabaseMaxCapacity", 16)
        yield f"PostgreSQL: Aurora, {least:g} to {most} capacity units", least * CAPACITY_UNIT_HOUR * HOURS
    yield f"functions: {15 + has_instances}; at rest only relay works", RELAY_GB_SECONDS * GB_SECOND
    if has_instances:
        yield (
            f"instances for polls: 3 at least, {given('PollVCpus', 24)} vCPUs at most",
            LEAST_INSTANCES * INSTANCE_HOUR * MANAGED * HOURS,
        )
    yield "queues: 6, four of them watched", 4 * QUEUE_CALLS_MONTH
    alarms = ALARMS + ALARMS_OF_INSTANCES * has_instances
    yield f"alarms: {alarms}, a dashboard", alarms * ALARM_MONTH
    yield "keys and secrets", 2 * KEY_MONTH + 6 * SECRET_MONTH
    if given("FrontDoor") == "cloudfront":
        yield "front door: CloudFront, a bucket", 0.0
    if given("WarmFrom"):
        yield f"instances ready from {given('WarmFrom')} to {given('WarmUntil')} UTC: jari plan has their price", None


def report(parameters):
    """For a person: a table."""
    lines, total, unknown = [], 0.0, False
    for what, dollars in rows(parameters):
        lines.append(f"  {what:<70} {'?' if dollars is None else f'{dollars:,.0f} $':>8}")
        total += dollars or 0
        unknown = unknown or dollars is None
    lines.append(f"  {'a month at rest, by list prices of us-east-1 (check them)':<70} {total:>6,.0f} $")
    if unknown:
        lines.append("  ?: no price is known here, and it is not in the sum")
    return "\n".join(lines) + "\n"
