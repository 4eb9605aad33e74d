// The API document, from the table of operations and the schemas that check requests: it cannot say anything else than they do.
import { type ConversionConfig, toJsonSchema } from "@valibot/to-json-schema";
import type * as v from "valibot";
import type { AnswerShape, Operation, TextSchema } from "./operation.ts";
import { type ProblemCode, problems } from "./problem.ts";
import { named, problemSchema } from "./schemas.ts";

type Node = { readonly [member: string]: unknown };

/** OpenAPI 3.1. Schemas that have a name stand once, in `components`. */
export function openApiDocument(operations: readonly Operation[], version: string): Node {
  const paths: { [path: string]: { [method: string]: Node } } = {};
  for (const operation of operations) {
    const path = operation.path.replace(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[operation.method.toLowerCase()] = describe(operation);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Writ",
      version,
      description:
        "Sessions of an agent under a written policy: submit, observe and control are three requests.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: Object.fromEntries(
        Object.entries(named).map(([name, schema]) => [name, jsonSchema(schema, name)]),
      ),
    },
  };
}

/** Every problem code that an operation can answer: its own, and those of the checks before it. */
export function problemCodes(operation: Operation): readonly ProblemCode[] {
  const checks: readonly (readonly [unknown, readonly ProblemCode[]])[] = [
    [true, ["host-denied", "origin-denied"]],
    // A constant cannot fail.
    [operation.path !== "/healthz", ["internal-error"]],
    [operation.role, ["unauthorized", "forbidden"]],
    [operation.startsWork, ["draining"]],
    [operation.query ?? operation.body ?? operation.headers?.includes("Idempotency-Key"), ["bad-request"]],
    [operation.body, ["unsupported-media-type", "body-too-large"]],
    [operation.rate, ["rate-limited"]],
  ];
  return [...new Set([...checks.flatMap(([on, codes]) => on ? codes : []), ...operation.problems])];
}

function describe(operation: Operation): Node {
  const { id, summary, role, body, answers, startsWork } = operation;
  return {
    operationId: id,
    summary,
    ...(role === undefined ? { security: [] } : { "x-role": role }),
    ...(startsWork === undefined ? {} : { "x-starts-work": true }),
    parameters: [
      ...parametersOf(operation.params, "path"),
      ...parametersOf(operation.query, "query"),
      ...(operation.headers ?? []).map((name) => ({ name, in: "header", schema: { type: "string" } })),
    ],
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { "application/json": { schema: jsonSchema(body) } } } }),
    responses: { ...mapValues(answers, answerOf), ...refusals(problemCodes(operation)) },
  };
}

function answerOf({ about, schema, media, headers }: AnswerShape): Node {
  const content = [
    ...(schema === undefined ? [] : [["application/json", { schema: jsonSchema(schema) }]]),
    ...(media ?? []).map((type) => [type, { schema: { type: "string" } }]),
  ];
  return {
    description: about,
    ...(content.length === 0 ? {} : { content: Object.fromEntries(content) }),
    ...(headers === undefined
      ? {}
      : { headers: mapValues(headers, (description) => ({ description, schema: { type: "string" } })) }),
  };
}

// One response for each status, which says the codes that it may carry.
function refusals(codes: readonly ProblemCode[]): Node {
  const statuses = [...new Set(codes.map((code) => problems[code].status))].sort();
  return Object.fromEntries(statuses.map((status) => {
    const own = codes.filter((code) => problems[code].status === status);
    const type = { enum: own.map((code) => `urn:writ:problem:${code}`) };
    const schema = { allOf: [jsonSchema(problemSchema), { type: "object", properties: { type } }] };
    return [status, { description: own.join(", "), content: { "application/problem+json": { schema } } }];
  }));
}

function parametersOf(schema: TextSchema | undefined, place: "path" | "query"): readonly Node[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = jsonSchema(schema) as {
    readonly properties?: { readonly [name: string]: Node };
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }));
}

function jsonSchema(schema: v.GenericSchema, ownName?: string): Node {
  // The definition of a name is not a reference to itself.
  const others = Object.entries(named).filter(([name]) => name !== ownName);
  const { $schema: _, $defs: __, ...rest } = toJsonSchema(schema, {
    target: "draft-2020-12",
    typeMode: "input",
    definitions: Object.fromEntries(others) as NonNullable<ConversionConfig["definitions"]>,
    overrideRef: ({ referenceId }) => `#/components/schemas/${referenceId}`,
    // Limits that JSON Schema has no word for are said in descriptions.
    ignoreActions: ["check", "metadata"],
  }) as Node;
  return rest;
}

function mapValues<V, W>(
  object: { readonly [key: string]: V },
  change: (value: V) => W,
): { [key: string]: W } {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}
