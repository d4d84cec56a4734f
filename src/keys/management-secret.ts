import type { Digest } from "./digest.ts";
import type { Secret } from "./secret.ts";
import { derivedSecretText, isSecretText, newSecretText, shownOfText } from "./secret.ts";

/** The text of a management key whose form and checksum are right. No API key can stand where one is meant. */
export type ManagementSecret = string & { readonly brand: "management secret" };

/** What is stored of a management key: 64 hex digits. */
export type ManagementKeyDigest = string & { readonly brand: "management key digest" };

/** As an API key's secret, but for its beginning: `tgm_<service>_`. */
export function newManagementSecret(serviceName: string): ManagementSecret {
	return newSecretText(prefixOf(serviceName)) as ManagementSecret;
}

/** The one that belongs to 128 hex digits, as `derivedSecret` of an API key. */
export function derivedManagementSecret(serviceName: string, hex: string): ManagementSecret {
	return derivedSecretText(prefixOf(serviceName), hex) as ManagementSecret;
}

/** Undefined unless the text has the form and checksum of a management key of this service. */
export function parseManagementSecret(text: string, serviceName: string): ManagementSecret | undefined {
	return isSecretText(text, prefixOf(serviceName)) ? (text as ManagementSecret) : undefined;
}

/** What may be shown and stored of it. */
export function shownOfManagementSecret(secret: ManagementSecret, serviceName: string) {
	return shownOfText(secret, prefixOf(serviceName));
}

/** Under the pepper, as API keys. With a space in what is hashed, so that no API key has this digest. */
export function managementDigest(digest: Digest, secret: ManagementSecret): ManagementKeyDigest {
	return digest(`management ${secret}` as unknown as Secret) as string as ManagementKeyDigest;
}

const prefixOf = (serviceName: string) => `tgm_${serviceName}_`;
