import { useState } from "react";
import { encode } from "uqr";
import { PASSWORD_CHARS_MIN } from "../../console/views.ts";
import { api, type SessionView } from "../api.ts";
import { CodeBlock } from "../parts/code.tsx";
import { NewPasswordField, PasswordField, TextField, useField } from "../parts/fields.tsx";
import { ActButton, LineForm, LinkButton, PanelForm } from "../parts/form.tsx";
import { Empty, ErrorMessage, Notice, Panel } from "../parts/page.tsx";
import { fromItems, TablePanel } from "../parts/table.tsx";
import { CopyableId, RelativeTime } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { authApi, useSession } from "../session.tsx";
import { t } from "../texts.tsx";

/** Sign-in settings of the viewer: password, second factor, passkeys and sessions. */

export function PasswordPanel() {
	const [current, next] = [useField(), useField()];
	const [changed, setChanged] = useState(false);
	const change = useAction(async () => {
		setChanged(false);
		await authApi.changePassword(current.value, next.value);
		current.onChange("");
		next.onChange("");
		setChanged(true);
	});
	return (
		<Panel title={t("Password")}>
			<PanelForm
				action={change}
				act={t("Change the password")}
				notice={changed && <Notice kind="ok">{t("The password was changed.")}</Notice>}
			>
				<PasswordField label={t("Current password")} {...current} />
				<NewPasswordField
					label={t("New password")}
					description={t("At least {count} characters. All other sessions are ended.", { count: PASSWORD_CHARS_MIN })}
					{...next}
				/>
			</PanelForm>
		</Panel>
	);
}

/**
 * Second factor: one-time codes of an authenticator app. It is active only after a first correct code, so that a failed
 * set-up locks no user out.
 */
export function TwoFactorPanel() {
	const { me, config, refresh } = useSession();
	const [setup, setSetup] = useState<{ readonly totpURI: string; readonly backupCodes: readonly string[] }>();
	const password = useField();
	const code = useField();
	const on = me?.user.twoFactorEnabled ?? false;
	const change = useAction(async () => {
		if (!on) setSetup(await authApi.enableTwoFactor(password.value));
		else await authApi.disableTwoFactor(password.value, code.value.trim());
		password.onChange("");
		code.onChange("");
		if (on) await refresh();
	});
	const confirm = useAction(async () => {
		await authApi.verifyTotp(code.value.replace(/\s/g, ""), false);
		code.onChange("");
		await refresh();
		setSetup(undefined);
	});
	if (!config.twoFactor) return null;
	const codeField = { autoComplete: "one-time-code", ...code };
	return (
		<Panel title={t("Two-factor authentication")}>
			{setup ? (
				<PanelForm action={confirm} act={t("Switch on")} main>
					<p>{t("Scan the QR code with an authenticator app, or enter the secret.")}</p>
					<QrCode text={setup.totpURI} label={t("The secret as a QR code")} />
					<CopyableId value={new URL(setup.totpURI).searchParams.get("secret") ?? ""} label={t("Copy the secret")} />
					<Notice kind="warn">{t("Store these backup codes. Each works once if you lose the app.")}</Notice>
					<CodeBlock code={setup.backupCodes.join("\n")} label={t("Copy the backup codes")} />
					<TextField label={t("Code from the app")} inputMode="numeric" {...codeField} />
				</PanelForm>
			) : (
				<PanelForm action={change} act={on ? t("Switch off") : t("Set up")}>
					<p>
						{on
							? t("Sign-in requires a code from your authenticator app.")
							: t("Protect your account with a code from an authenticator app. Setting it up ends all other sessions.")}
					</p>
					<PasswordField label={t("Your password")} {...password} />
					{on && <TextField label={t("Code from the app, or a backup code")} {...codeField} />}
				</PanelForm>
			)}
		</Panel>
	);
}

/** Width of the QR code's white margin in modules. Scanners need it. */
const BORDER = 2;

/** QR code, black on white in both themes, as scanners expect. */
function QrCode({ text, label }: { text: string; label: string }) {
	const { data, size } = encode(text, { border: BORDER });
	const path = data.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
	return (
		<svg className="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shapeRendering="crispEdges">
			<path d={path} fill="#000" />
		</svg>
	);
}

export function PasskeysPanel() {
	const passkeys = useResource("passkeys", api.passkeys);
	const name = useField();
	const add = useAction(async () => {
		const { startRegistration } = await import("@simplewebauthn/browser");
		await authApi.endPasskey(name.value.trim(), await startRegistration({ optionsJSON: await authApi.beginPasskey() }));
		name.onChange("");
		await passkeys.reload();
	});
	const remove = useAction((id: string) => api.removePasskey(id), passkeys.reload);
	return (
		<TablePanel
			title={t("Passkeys")}
			{...fromItems(passkeys)}
			empty={
				<Empty title={t("No passkeys.")}>
					{t("Sign in with the fingerprint, face or PIN of a device instead of a password.")}
				</Empty>
			}
			columns={[
				{ label: t("Name"), lead: true, render: (item) => item.name },
				{ label: t("Added"), render: (item) => <RelativeTime atMs={item.createdAtMs} /> },
				{ label: t("Last used"), render: (item) => <RelativeTime atMs={item.lastUsedAtMs} /> },
			]}
			act={(item) => <LinkButton onClick={() => void remove.run(item.id)}>{t("Remove")}</LinkButton>}
		>
			{remove.error && <ErrorMessage error={remove.error} />}
			<LineForm action={add} act={t("Add a passkey")}>
				<TextField label={t("Name of the new passkey")} placeholder={t("Laptop")} size="xs" maxLength={60} {...name} />
			</LineForm>
		</TablePanel>
	);
}

export function SessionsPanel() {
	const sessions = useResource("sessions", api.sessions);
	const end = useAction((id: string) => api.revokeSession(id), sessions.reload);
	const endOthers = useAction(() => api.revokeOtherSessions(), sessions.reload);
	const failure = end.error ?? endOthers.error;
	const hasOthers = (sessions.data?.items.length ?? 0) > 1;
	return (
		<TablePanel
			title={t("Sessions")}
			aside={hasOthers && <ActButton label={t("End all other sessions")} action={endOthers} />}
			{...fromItems(sessions)}
			empty={<Empty title={t("No sessions.")} />}
			columns={[
				{
					label: t("Device"),
					lead: true,
					render: (session) => `${deviceOf(session)}${session.current ? t(" (this one)") : ""}`,
				},
				{ label: t("Address"), render: (session) => session.ip },
				{ label: t("Signed in"), render: (session) => <RelativeTime atMs={session.createdAtMs} /> },
				{ label: t("Expires"), render: (session) => <RelativeTime atMs={session.expiresAtMs} /> },
			]}
			act={(session) =>
				!session.current && <LinkButton onClick={() => void end.run(session.id)}>{t("End")}</LinkButton>
			}
		>
			{failure && <ErrorMessage error={failure} />}
		</TablePanel>
	);
}

const BROWSERS = { Edg: "Edge", Firefox: "Firefox", Chrome: "Chrome", Safari: "Safari" };
const SYSTEMS = { iPhone: "iPhone", Android: "Android", Windows: "Windows", "Mac OS": "macOS", Linux: "Linux" };

/** Returns the names of browser and operating system, so that users recognize the device. */
function deviceOf({ userAgent }: SessionView): string {
	const agent = userAgent ?? "";
	const named = (names: object) => Object.entries(names).find(([mark]) => agent.includes(mark))?.[1];
	const [browser, system] = [named(BROWSERS), named(SYSTEMS)];
	if (browser && system) return t("{browser} on {system}", { browser, system });
	return (browser ?? system ?? agent.slice(0, 40)) || t("Unknown device");
}
