// `writ help [TOPIC]`: the reference that ships inside the executable.
import { exitCodes } from "../../core/outcome.ts";
import { nearest } from "../../core/problem.ts";
import type { CommandModule } from "../command.ts";
import { helpTopics } from "../help_topics.ts";
import { toJsonLine } from "../json_line.ts";

export const help: CommandModule = {
  define(command, { output }, done) {
    command.argument("[topic]", "a topic").description("read about a topic")
      .option("--json", "the topics and their texts as JSON")
      .action((name: string | undefined, { json }: { json?: boolean }) => {
        const topic = helpTopics.find((t) => t.name === name);
        if (name !== undefined && topic === undefined) {
          const near = nearest(name, helpTopics.map((t) => t.name));
          output.note(
            output.safe(
              `error: no topic \`${name}\`; ${
                near === undefined
                  ? `topics: ${helpTopics.map((t) => t.name).join(", ")}`
                  : `did you mean \`${near}\`?`
              }`,
            ),
          );
          return done(exitCodes.usage);
        }
        if (json === true) output.result(toJsonLine(topic ?? { topics: helpTopics }));
        else output.result(topic?.text.replace(/^<!--.*-->\n/gm, "") ?? listTopics());
        done(exitCodes.done);
      });
  },
};

function listTopics(): string {
  const width = Math.max(...helpTopics.map((t) => t.name.length));
  return `Topics (writ help TOPIC):\n\n${
    helpTopics.map((t) => `  ${t.name.padEnd(width)}  ${t.summary}`).join("\n")
  }\n`;
}
