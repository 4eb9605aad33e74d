// What a log says of a session when it opens.
import type { SessionFacts } from "../core/event.ts";
import type { ModelSettings } from "../core/policy.ts";
import type { SessionBoxes } from "./boxes.ts";
import type { Host } from "./host.ts";
import type { SessionOptions } from "./session.ts";
import type { Settings } from "./settings.ts";
import { version } from "./version.ts";

/** Whom a session belongs to. */
export function userOf(host: Host, options: SessionOptions): string {
  return options.fixed?.actor ?? host.user;
}

/** The id of a model; `script` where replies come from a file and no name is given. */
export function modelName(model: ModelSettings, options: SessionOptions): string {
  return model.name === "" && isScripted(model, options) ? "script" : model.name;
}

export function factsOf(
  host: Host,
  settings: Settings,
  options: SessionOptions,
  boxes: SessionBoxes,
): SessionFacts {
  const { policy } = settings;
  return {
    version,
    policy: {
      ...(policy.name === undefined ? {} : { name: policy.name }),
      revision: options.fixed === undefined ? policy.revision : "fixed",
    },
    layers: policy.files,
    provider: isScripted(policy.model, options) ? "script" : policy.model.provider,
    model: modelName(policy.model, options),
    workspace: policy.root,
    cwd: settings.cwd,
    platform: options.fixed?.platform ?? host.platform,
    sandbox: options.fixed === undefined ? boxes.facts : policy.sandbox.mode,
    trust: settings.trusted ? "trusted" : "untrusted",
    actor: userOf(host, options),
    ...(options.served === undefined ? {} : { served: options.served }),
  };
}

function isScripted(model: ModelSettings, options: SessionOptions): boolean {
  return options.script !== undefined || options.replies !== undefined || model.provider === "script";
}
