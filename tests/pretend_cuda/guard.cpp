// CUDA as torch needs it to make and differentiate tensors that say they are on cuda:0: no work.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {
using c10::Device, c10::DeviceIndex, c10::DeviceType, c10::Stream;

struct Guard : c10::impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  static Device first() { return Device(DeviceType::CUDA, 0); }
  Device exchangeDevice(Device) const override { return first(); }
  Device getDevice() const override { return first(); }
  Stream getStream(Device) const noexcept override { return Stream(Stream::DEFAULT, first()); }
  Stream exchangeStream(Stream) const noexcept override { return Stream(Stream::DEFAULT, first()); }
};
c10::impl::DeviceGuardImplRegistrar guard(DeviceType::CUDA, new Guard());
}  // namespace

namespace at {
struct Hooks : CUDAHooksInterface {
  Hooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  const Generator& getDefaultGenerator(DeviceIndex) const override {
    return detail::getDefaultCPUGenerator();
  }
  Generator getNewGenerator(DeviceIndex) const override { return detail::createCPUGenerator(); }
};
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", Hooks);
}  // namespace at
