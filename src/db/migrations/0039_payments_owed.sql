-- What refunds and disputes still owe is looked for every few seconds, by every console.
CREATE INDEX "stripe_dispute_owed" ON "stripe_dispute" USING btree ("payment_id") WHERE ("stripe_dispute"."booked" = 'nothing' and "stripe_dispute"."state" <> 'won') or ("stripe_dispute"."booked" = 'taken' and "stripe_dispute"."state" = 'won');--> statement-breakpoint
CREATE INDEX "stripe_payment_owed" ON "stripe_payment" USING btree ("id") WHERE "stripe_payment"."booked_refund_cents" < "stripe_payment"."refunded_cents";
