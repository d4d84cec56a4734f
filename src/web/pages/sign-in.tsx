import { Button, Checkbox, Group, Stack } from "@mantine/core";
import { useEffect, useState } from "react";
import type { Terms } from "../../catalog/brand.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../../console/views.ts";
import { api } from "../api.ts";
import { brand } from "../brand.ts";
import { pageAfterSignIn } from "../navigation.ts";
import { AuthLayout } from "../parts/auth-layout.tsx";
import { CheckField, EmailField, NameField, NewPasswordField, PasswordField, TextField } from "../parts/fields.tsx";
import { ActButton, AuthForm } from "../parts/form.tsx";
import { ErrorMessage, Notice } from "../parts/page.tsx";
import { useAction } from "../resource.ts";
import { Link, linkRenderer, navigate, safeNextPath, useRoute } from "../router.tsx";
import { authApi, useSession } from "../session.tsx";
import { rich, t } from "../texts.tsx";
import { MailSent } from "./sign-in-mail.tsx";

/** Returns the page to open after the sign-in, from the URL. Opens it at once if the viewer is signed in. */
function useNext() {
	const { me } = useSession();
	const { query } = useRoute();
	const next = safeNextPath(query.get("next"));
	useEffect(() => {
		if (me) navigate(pageAfterSignIn(next, me), { replace: true });
	}, [me, next]);
	return {
		next,
		linkWithNext: (to: string) => linkRenderer(query.has("next") ? `${to}?next=${encodeURIComponent(next)}` : to),
	};
}

export function SignInPage() {
	const { config, refresh } = useSession();
	const { query } = useRoute();
	const { next, linkWithNext } = useNext();
	const [step, setStep] = useState<"password" | "code" | "company">("password");
	const refusal = query.get("company");
	return (
		<AuthLayout
			title={t("Sign in")}
			below={
				config.signUp &&
				step === "password" &&
				rich("No account yet? <link>Sign up</link>", { link: linkWithNext("/sign-up") })
			}
		>
			{refusal !== null && <Notice kind="warn">{COMPANY_REFUSALS[refusal] ?? COMPANY_REFUSALS.failed}</Notice>}
			{step === "password" && (
				<>
					<PasswordStep onCode={() => setStep("code")} onDone={refresh} />
					<Providers next={next} />
					<PasskeyStep onDone={refresh} />
					<Button variant="subtle" onClick={() => setStep("company")}>
						{t("Sign in with your company's account")}
					</Button>
				</>
			)}
			{step === "code" && <CodeStep onDone={refresh} />}
			{step === "company" && <CompanyStep next={next} onBack={() => setStep("password")} />}
		</AuthLayout>
	);
}

/** Button for signing in with a passkey, if the browser supports that. The browser lists the site's passkeys. */
function PasskeyStep({ onDone }: { onDone: () => Promise<void> }) {
	const signIn = useAction(async () => {
		const { startAuthentication } = await import("@simplewebauthn/browser");
		await authApi.endPasskeySignIn(await startAuthentication({ optionsJSON: await authApi.beginPasskeySignIn() }));
		await onDone();
	});
	if (!("PublicKeyCredential" in globalThis)) return null;
	return (
		<>
			{signIn.error && <ErrorMessage error={signIn.error} />}
			<ActButton size="sm" look="text" label={t("Sign in with a passkey")} action={signIn} />
		</>
	);
}

const COMPANY_REFUSALS: Readonly<Record<string, string>> = {
	stale: t("This sign-in expired or was started in another browser. Start again."),
	failed: t("The company's provider sent an invalid response. Contact its administrator."),
	other_domain: t("The provider's address for you is not in the company's domain."),
	not_verified: t("The provider does not confirm that your address is verified."),
	other_person: t(
		"This address previously belonged to another person in the company. Contact an owner of the account.",
	),
	unproved: t("A sign-up with this address was never verified. Try again tomorrow."),
	operator: t("Operators of the service sign in with their password."),
	no_role: t("Your company has assigned you no role in its account."),
};

/** Sign-in through a company, which the server finds by the mail address's domain. */
function CompanyStep({ next, onBack }: { next: string; onBack: () => void }) {
	const [email, setEmail] = useState("");
	const begin = useAction(async () => {
		location.assign((await authApi.beginCompany(email.trim(), next)).url);
	});
	const back = <ActButton size="sm" look="text" label={t("Use a password")} onClick={onBack} />;
	return (
		<AuthForm action={begin} act={t("Continue")} more={back}>
			<EmailField label={t("Work email")} autoComplete="username" data-autofocus value={email} onChange={setEmail} />
		</AuthForm>
	);
}

function PasswordStep(props: { onCode: () => void; onDone: () => Promise<void> }) {
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const [remember, setRemember] = useState(true);
	const signIn = useAction(async () => {
		if ((await authApi.signIn(email.trim(), password, remember)).twoFactorRedirect) props.onCode();
		else await props.onDone();
	});
	const hint = signIn.error?.status === 401 && (
		<p className="small dim">{t("Just signed up? Open the link in the mail first, or sign up again for a new one.")}</p>
	);
	return (
		<AuthForm action={signIn} act={t("Sign in")} more={hint}>
			<EmailField name="email" autoComplete="username" value={email} onChange={setEmail} />
			<PasswordField label={t("Password")} name="password" value={password} onChange={setPassword} />
			<Group justify="space-between" gap="xs">
				<CheckField label={t("Stay signed in")} checked={remember} onChange={setRemember} />
				<Link to="/reset">{t("Forgot password?")}</Link>
			</Group>
		</AuthForm>
	);
}

const PROVIDERS = { github: t("Continue with GitHub"), google: t("Continue with Google") };
type Provider = keyof typeof PROVIDERS;

function Providers({ next }: { next: string }) {
	const { config } = useSession();
	const go = useAction(async (provider: Provider) => {
		location.assign((await authApi.signInWith(provider, next)).url);
	});
	const offered = (Object.keys(PROVIDERS) as Provider[]).filter((provider) => config[provider]);
	if (offered.length === 0) return null;
	return (
		<Stack gap="sm">
			{offered.map((provider) => (
				<ActButton key={provider} size="sm" label={PROVIDERS[provider]} onClick={() => void go.run(provider)} />
			))}
			{go.error && <ErrorMessage error={go.error} />}
		</Stack>
	);
}

function CodeStep({ onDone }: { onDone: () => Promise<void> }) {
	const [code, setCode] = useState("");
	const [trust, setTrust] = useState(false);
	const [backup, setBackup] = useState(false);
	const verify = useAction(async () => {
		if (backup) await authApi.verifyBackupCode(code.trim());
		else await authApi.verifyTotp(code.replace(/\s/g, ""), trust);
		await onDone();
	});
	const other = (
		<Button variant="subtle" onClick={() => setBackup(!backup)}>
			{backup ? t("Use the authenticator app") : t("Use a backup code")}
		</Button>
	);
	return (
		<AuthForm action={verify} act={t("Continue")} more={other}>
			<TextField
				label={backup ? t("Backup code") : t("Code from your authenticator app")}
				autoComplete="one-time-code"
				inputMode={backup ? "text" : "numeric"}
				data-autofocus
				value={code}
				onChange={setCode}
			/>
			{!backup && <CheckField label={t("Trust this device")} checked={trust} onChange={setTrust} />}
		</AuthForm>
	);
}

export function SignUpPage() {
	const { config } = useSession();
	const { next, linkWithNext } = useNext();
	const [sentTo, setSentTo] = useState<string>();
	if (!config.signUp) {
		return (
			<AuthLayout title={t("Sign up")}>
				<Notice>{t("New accounts are by invitation only. Contact the operator of this service.")}</Notice>
			</AuthLayout>
		);
	}
	if (sentTo) {
		return (
			<AuthLayout title={t("Check your mail")} below={<Link to="/sign-in">{t("Sign in")}</Link>}>
				<MailSent email={sentTo} what="verify" />
			</AuthLayout>
		);
	}
	return (
		<AuthLayout
			title={t("Sign up")}
			below={rich("Signed up before? <link>Sign in</link>", { link: linkWithNext("/sign-in") })}
		>
			<SignUpForm next={next} onSent={setSentTo} />
			<Providers next={next} />
		</AuthLayout>
	);
}

function SignUpForm({ next, onSent }: { next: string; onSent: (email: string) => void }) {
	const [name, setName] = useState("");
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const signUp = useAction(async () => {
		if (password.length < PASSWORD_CHARS_MIN) return;
		const acceptedTerms = brand.terms?.version ?? null;
		await authApi.signUp({ name: name.trim(), email: email.trim(), password, next, acceptedTerms });
		onSent(email.trim());
	});
	return (
		<AuthForm action={signUp} act={t("Sign up")}>
			<NameField value={name} onChange={setName} />
			<EmailField autoComplete="email" value={email} onChange={setEmail} />
			<NewPasswordField maxLength={PASSWORD_CHARS_MAX} value={password} onChange={setPassword} />
			{brand.terms && <TermsBox terms={brand.terms} />}
		</AuthForm>
	);
}

function TermsBox({ terms }: { terms: Terms }) {
	return (
		<Checkbox
			required
			label={rich("I agree to the {link}", {
				link: (
					<a href={terms.url} target="_blank" rel="noreferrer">
						{rich("terms of {name}", { name: brand.name })}
					</a>
				),
			})}
		/>
	);
}

/** Asks a signed-in user to accept the terms: after a social sign-in or an invitation, or when the terms change. */
export function TermsPage({ terms }: { terms: Terms }) {
	const { refresh, signOut } = useSession();
	const accept = useAction(() => api.acceptTerms(terms.version), refresh);
	const leave = useAction(signOut);
	const below = (
		<>
			{leave.error && <ErrorMessage error={leave.error} />}
			<ActButton look="text" label={t("Sign out")} action={leave} />
		</>
	);
	return (
		<AuthLayout title={t("Terms of service")} below={below}>
			<AuthForm action={accept} act={t("Continue")}>
				<TermsBox terms={terms} />
			</AuthForm>
		</AuthLayout>
	);
}
