// The part of the SDK that sends a request and reads its stream, and nothing else of it: the executable holds what is imported
// here by name, without the hundreds of resources and errors that its main entry brings.
export { BaseAnthropic } from "@anthropic-ai/sdk/client";
