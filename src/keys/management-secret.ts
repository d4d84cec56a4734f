import type { Digest } from "./digest.ts";
import type { Secret } from "./secret.ts";
import { derivedSecretText, isSecretText, newSecretText, shownOfText } from "./secret.ts";

/** The text of a management key with correct form and checksum. The brand keeps API keys from being used as one. */
export type ManagementSecret = string & { readonly brand: "management secret" };

/** The stored form of a management key: 64 hex digits. */
export type ManagementKeyDigest = string & { readonly brand: "management key digest" };

/** Like an API key's secret, but with the prefix `tgm_<service>_`. */
export function newManagementSecret(serviceName: string): ManagementSecret {
	return newSecretText(prefixOf(serviceName)) as ManagementSecret;
}

/** Derived from 128 hex digits, like `derivedSecret` for API keys. */
export function derivedManagementSecret(serviceName: string, hex: string): ManagementSecret {
	return derivedSecretText(prefixOf(serviceName), hex) as ManagementSecret;
}

/** Undefined unless the text has the form and checksum of a management key of this service. */
export function parseManagementSecret(text: string, serviceName: string): ManagementSecret | undefined {
	return isSecretText(text, prefixOf(serviceName)) ? (text as ManagementSecret) : undefined;
}

/** The displayable and storable parts of it. */
export function shownOfManagementSecret(secret: ManagementSecret, serviceName: string) {
	return shownOfText(secret, prefixOf(serviceName));
}

/** Under the pepper, like API keys. The hashed text contains a space, so no API key has this digest. */
export function managementDigest(digest: Digest, secret: ManagementSecret): ManagementKeyDigest {
	return digest(`management ${secret}` as unknown as Secret) as string as ManagementKeyDigest;
}

const prefixOf = (serviceName: string) => `tgm_${serviceName}_`;
