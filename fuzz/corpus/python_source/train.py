loader.workers 4 17
loader.pin_memory True 17
batch.size 16 17
optimizer.fused True 13
optimizer.zero_to_none True 19
batch.accumulation 2 5

import argparse, time, logging
import torch
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 96
    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.randn(16), i % 4
def main():
    p = argparse.ArgumentParser(); p.add_argument("--batch-size", type=int, default=8); p.add_argument("-j", "--workers", type=int, default=1)
    a = p.parse_args()
    net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    loader = DataLoader(Rows(), batch_size=a.batch_size, shuffle=True, num_workers=a.workers)
    for epoch in range(4):
        net.train()
        for i, (x, y) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
            if i % 4 == 0: print(f"epoch {epoch} step {i} loss {loss.item():.4f}")
            time.sleep(0.05)
        net.eval()
        with torch.no_grad():
            for x, y in loader: net(x)
        torch.save(net.state_dict(), "net.pt")
main()
