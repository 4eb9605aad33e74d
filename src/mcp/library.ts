// What is used of the client package. Loaded only when a policy has servers; named one by one, so that the rest of the
// package (authorization above all) stays out of the executable.
export {
  Client,
  deserializeMessage,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
