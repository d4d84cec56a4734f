import { Button, Checkbox, Group, Stack } from "@mantine/core";
import { useEffect, useState } from "react";
import { authApi } from "../auth-api.ts";
import { AuthLayout } from "../parts/auth-layout.tsx";
import { EmailField, PasswordField, TextField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { Notice, Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { Link, navigate, safeNext, usePlace } from "../router.tsx";
import { useSession } from "../session.tsx";
import { rich, t } from "../texts.tsx";

export function SignInPage() {
	const { config, me, refresh } = useSession();
	const { query } = usePlace();
	const next = safeNext(query.get("next"));
	const [step, setStep] = useState<"password" | "code" | "company">("password");
	const refusal = query.get("company");
	useEffect(() => {
		if (me) navigate(next, { replace: true });
	}, [me, next]);

	return (
		<AuthLayout
			title={t("Sign in")}
			below={
				config.signUp && step === "password"
					? rich("No account yet? <link>Sign up</link>", {
							link: (inner) => (
								<Link to={`/sign-up${query.has("next") ? `?next=${encodeURIComponent(next)}` : ""}`}>{inner}</Link>
							),
						})
					: undefined
			}
		>
			{refusal !== null && <Notice kind="warn">{COMPANY_REFUSALS[refusal] ?? COMPANY_REFUSALS.failed}</Notice>}
			{step === "password" && (
				<>
					<PasswordStep next={next} onCode={() => setStep("code")} onDone={refresh} />
					<PasskeyStep onDone={refresh} />
					<Button variant="subtle" onClick={() => setStep("company")}>
						{t("Sign in with your company")}
					</Button>
				</>
			)}
			{step === "code" && <CodeStep onDone={refresh} />}
			{step === "company" && <CompanyStep next={next} onBack={() => setStep("password")} />}
		</AuthLayout>
	);
}

/** Shown where the browser supports passkeys; the browser offers the passkeys of this site. */
function PasskeyStep({ onDone }: { onDone: () => Promise<void> }) {
	const signIn = useAction(async () => {
		const { startAuthentication } = await import("@simplewebauthn/browser");
		const optionsJSON = await authApi.beginPasskeySignIn();
		await authApi.endPasskeySignIn(await startAuthentication({ optionsJSON }));
		await onDone();
	});
	if (!("PublicKeyCredential" in globalThis)) return null;
	return (
		<>
			{signIn.error && <Problem error={signIn.error} />}
			<Button variant="subtle" loading={signIn.busy} onClick={() => void signIn.run()}>
				{t("Sign in with a passkey")}
			</Button>
		</>
	);
}

/** Why a company's sign-in failed. */
const COMPANY_REFUSALS: Readonly<Record<string, string>> = {
	stale: t("This sign-in was begun too long ago or in another browser. Begin again."),
	failed: t("Your company's sign-in did not say who you are in a way that can be trusted. Ask who looks after it."),
	other_domain: t("Your company's sign-in names an address that is not of the company's own domain."),
	not_verified: t("Your company's sign-in does not say that your address is verified."),
	other_person: t("This address belonged to somebody else of your company before. Ask an owner of the account."),
	unproved: t("Somebody signed up with this address and never proved it. Try again tomorrow."),
	operator: t("Operators of the service sign in with their password."),
	no_role: t("Your company gives you no role in its account."),
};

/** The address decides the company. */
function CompanyStep({ next, onBack }: { next: string; onBack: () => void }) {
	const [email, setEmail] = useState("");
	const begin = useAction(async () => {
		const { url } = await authApi.beginCompany(email.trim(), next);
		location.assign(url);
	});
	return (
		<Form
			onSubmit={begin.run}
			error={begin.error}
			end={
				<>
					<Button type="submit" loading={begin.busy}>
						{t("Continue")}
					</Button>
					<Button variant="subtle" onClick={onBack}>
						{t("Use a password")}
					</Button>
				</>
			}
		>
			<EmailField
				label={t("Your address at the company")}
				autoComplete="username"
				data-autofocus
				value={email}
				onChange={setEmail}
			/>
		</Form>
	);
}

function PasswordStep(props: { next: string; onCode: () => void; onDone: () => Promise<void> }) {
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const [remember, setRemember] = useState(true);
	const signIn = useAction(async () => {
		const answer = await authApi.signIn(email.trim(), password, remember);
		if (answer.twoFactorRedirect) props.onCode();
		else await props.onDone();
	});
	const wrong = signIn.error?.status === 401;

	return (
		<>
			<Form
				onSubmit={signIn.run}
				error={signIn.error}
				end={
					<>
						{wrong && (
							<p className="small dim">
								{t("Signed up a moment ago? Open the link in the mail first, or sign up again for a new one.")}
							</p>
						)}
						<Button type="submit" loading={signIn.busy}>
							{t("Sign in")}
						</Button>
					</>
				}
			>
				<EmailField name="email" autoComplete="username" value={email} onChange={setEmail} />
				<PasswordField
					label={t("Password")}
					name="password"
					autoComplete="current-password"
					value={password}
					onChange={setPassword}
				/>
				<Group justify="space-between" gap="xs">
					<Checkbox
						label={t("Stay signed in")}
						checked={remember}
						onChange={(event) => setRemember(event.currentTarget.checked)}
					/>
					<Link to="/reset">{t("Forgot it?")}</Link>
				</Group>
			</Form>
			<Providers next={props.next} />
		</>
	);
}

/** Sign-in through other services, where configured. */
export function Providers({ next }: { next: string }) {
	const { config } = useSession();
	const go = useAction(async (provider: "github" | "google") => {
		const { url } = await authApi.signInWith(provider, next);
		location.assign(url);
	});
	if (!config.github && !config.google) return null;
	return (
		<Stack gap="sm">
			{config.github && (
				<Button variant="default" onClick={() => void go.run("github")}>
					{t("Continue with GitHub")}
				</Button>
			)}
			{config.google && (
				<Button variant="default" onClick={() => void go.run("google")}>
					{t("Continue with Google")}
				</Button>
			)}
			{go.error && <Problem error={go.error} />}
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
	return (
		<Form
			onSubmit={verify.run}
			error={verify.error}
			end={
				<>
					<Button type="submit" loading={verify.busy}>
						{t("Continue")}
					</Button>
					<Button variant="subtle" onClick={() => setBackup(!backup)}>
						{backup ? t("Use the authenticator app") : t("Use a backup code")}
					</Button>
				</>
			}
		>
			<TextField
				label={backup ? t("Backup code") : t("Code of your authenticator app")}
				autoComplete="one-time-code"
				inputMode={backup ? "text" : "numeric"}
				data-autofocus
				value={code}
				onChange={setCode}
			/>
			{!backup && (
				<Checkbox
					label={t("Do not ask on this device again")}
					checked={trust}
					onChange={(event) => setTrust(event.currentTarget.checked)}
				/>
			)}
		</Form>
	);
}
