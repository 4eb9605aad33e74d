// The one table of operations: routes, checks, the API document and its client all follow it.
import type { Operation } from "./operation.ts";
import { eventOperations } from "./operations_events.ts";
import { permissionOperations } from "./operations_permissions.ts";
import { policyOperations } from "./operations_policy.ts";
import { sessionOperations } from "./operations_sessions.ts";
import { skillOperations } from "./operations_skills.ts";
import { systemOperations } from "./operations_system.ts";
import { turnOperations } from "./operations_turns.ts";

export const operations: readonly Operation[] = [
  ...systemOperations,
  ...sessionOperations,
  ...turnOperations,
  ...eventOperations,
  ...permissionOperations,
  ...skillOperations,
  ...policyOperations,
];
