// A self-signed certificate for a name, made when a test needs one, so that no key is kept anywhere.
import { Buffer } from "node:buffer";
import { createSign, generateKeyPairSync } from "node:crypto";

export type Certificate = { readonly key: string; readonly cert: string };

/** PEM texts. The certificate is its own authority and holds for this one DNS name. */
export function certificateFor(name: string): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const signature = tagged(0x30, oid("2a8648ce3d040302"));
  const subject = tagged(0x30, tagged(0x31, tagged(0x30, oid("550403"), tagged(0x0c, text(name)))));
  const extension = (id: string, ...inner: Uint8Array[]) =>
    tagged(0x30, oid(id), tagged(0x04, tagged(0x30, ...inner)));
  const body = tagged(
    0x30,
    tagged(0xa0, tagged(0x02, bytes("02"))),
    tagged(0x02, bytes("01")),
    signature,
    subject,
    tagged(0x30, tagged(0x17, text("200101000000Z")), tagged(0x17, text("491231235959Z"))),
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    tagged(
      0xa3,
      tagged(
        0x30,
        extension("551d13", tagged(0x01, bytes("ff"))),
        extension("551d11", tagged(0x82, text(name))),
      ),
    ),
  );
  const signed = createSign("sha256").update(body).sign(privateKey);
  const certificate = tagged(0x30, body, signature, tagged(0x03, bytes("00"), signed));
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64Lines(certificate)}\n-----END CERTIFICATE-----\n`,
  };
}

function tagged(tag: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const head = length < 128
    ? [tag, length]
    : length < 256
    ? [tag, 0x81, length]
    : [tag, 0x82, length >> 8, length & 255];
  return new Uint8Array(Buffer.concat([new Uint8Array(head), ...parts]));
}

function oid(hex: string): Uint8Array {
  return tagged(0x06, bytes(hex));
}

function bytes(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, "hex"));
}

function text(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

function base64Lines(data: Uint8Array): string {
  return Buffer.from(data).toString("base64").match(/.{1,64}/g)?.join("\n") ?? "";
}
