// A running session as a person watches it.
import type { Event } from "../core/event.ts";
import type { Context } from "./command.ts";
import { renderEvent } from "./render.ts";

/** Events as lines on stderr; the model's words stream to stdout when a person looks at it. */
export function liveView(context: Context): (event: Event) => void {
  const { output, host } = context;
  let midLine = false;
  let session: string | undefined;
  return (event) => {
    session ??= event.session;
    // What a fork says is for the session around it; what it does stands a step to the right.
    const inFork = event.session !== session;
    if (event.type === "model.delta") {
      if (!host.stdoutIsTerminal || inFork) return;
      output.result(output.safe(event.data.text));
      midLine = !event.data.text.endsWith("\n");
      return;
    }
    if (midLine && (event.type === "model.completed" || event.type === "model.failed")) {
      output.result("\n");
      midLine = false;
    }
    for (const line of renderEvent(event, output.paint)) output.note(inFork ? `  ${line}` : line);
  };
}
